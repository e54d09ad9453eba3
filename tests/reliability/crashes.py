"""Trainings that are killed again and again, checked by their files alone.

`python -m tests.reliability.crashes --count 20` kills that many trainings, three times each, and prints what was compared.
"""

import argparse
import random
import tempfile
from collections import Counter
from pathlib import Path

from tests.faults.harness import kill_until_finished
from tests.reliability.checker import check
from tests.zygote import Zygote

SCENARIO = "tests.reliability.counted"
IMPORT = ["--import", "tests.training.trackers.ledger"]
FLAGS = (
    "--trainer.epochs 6 --trainer.random_seed {seed} --train.batch_size 8 --val.batch_size 8 --trainer.checkpoint_every {every}steps "
    "--trainer.keep_checkpoints 100 --train.num_processes 0 --val.num_processes 0 --tracker ledger --tracker.ledger.file {folder}/ledger"
)


def crash_and_check(zygote: Zygote, folder: Path, seed: int, kills: int) -> tuple[int, dict[str, int]]:
    """Trains with this many kills at random moments; returns how many there were, and what the checker compared."""
    rng = random.Random(seed)
    words = FLAGS.format(seed=seed, every=rng.choice([1, 2, 3, 5]), folder=folder).split()
    done = kill_until_finished(
        zygote, folder / "run", [*IMPORT, *words], rng, kills, resume_flags=lambda: IMPORT, scenario=SCENARIO
    )
    return done.total(), check(folder / "run")


def main() -> int:
    """Runs trainings and adds up what was compared."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    zygote = Zygote.started()
    total: Counter[str] = Counter()
    for seed in range(options.count):
        with tempfile.TemporaryDirectory(prefix="scena-crashes-") as folder:
            kills, compared = crash_and_check(zygote, Path(folder), seed, kills=3)
        total.update({"trainings": 1, "kills": kills, **compared})
        print(dict(total), flush=True)
    zygote.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
