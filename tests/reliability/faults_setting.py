"""Tests with `SCENA_FAULT`: `python -m tests.reliability.faults_setting --seeds 10` runs those of data, training and faults ten times.

Other paths may follow: `python -m tests.reliability.faults_setting --seeds 1 tests` runs everything. Tests that count what the setting
changes (checkpoints, messages, processes) are skipped.
"""

import argparse
import os
import subprocess
import sys

PATHS = ["tests/data", "tests/training", "tests/faults"]
COUNTING = [
    "tests/data/engines/test_parallel.py::test_a_slow_consumer_finds_batches_ready",
    "tests/faults/test_signals.py::test_a_signal_saves_and_leaves",
    "tests/training/test_blocks.py::test_one_seven_and_thirty_two_steps_in_a_block_give_the_same_weights_and_logs",
    "tests/training/test_blocks.py::test_a_block_ends_where_a_callback_wants_to_see_the_weights",
]
"""Tests that assert on how often something happens."""


def main() -> int:
    """Runs the tests with each seed, and prints which failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("paths", nargs="*", default=PATHS)
    options = parser.parse_args()
    failed = []
    for seed in range(options.first, options.first + options.seeds):
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *options.paths]
        command += [word for test in COUNTING for word in ("--deselect", test)]
        if subprocess.run(command, env={**os.environ, "SCENA_FAULT": str(seed)}).returncode:
            failed.append(seed)
    print(f"{options.seeds} seeds, failed: {failed or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
