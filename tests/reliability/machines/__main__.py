"""Runs state machines: `python -m tests.reliability.machines --steps 100000 --seed 1` takes that many steps in all.

`--only NAME…` takes some of them. Every machine gets an equal share of the steps.
"""

import argparse
import importlib
import time

from tests.reliability.machines.base import run

MACHINES = {
    "pipeline": "PipelineMachine",
    "checkpoints": "CheckpointMachine",
    "parameters": "ParametersMachine",
    "serving": "BatcherMachine",
}
SLICE = 20
"""Examples at a time: each slice has a seed of its own."""


def main() -> int:
    """Takes the steps, machine by machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=MACHINES)
    options = parser.parse_args()
    names = options.only or list(MACHINES)
    total = 0
    for name in names:
        machine = getattr(importlib.import_module(f"tests.reliability.machines.{name}"), MACHINES[name])
        start, taken, seed = time.process_time(), 0, options.seed
        while taken < options.steps / len(names):
            taken += run(machine, SLICE, seed)
            seed += 1
        total += taken
        print(f"{name:12} {taken:>7} steps {time.process_time() - start:8.1f} s, seeds to {seed - 1}", flush=True)
    print(f"{total} steps, nothing wrong")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
