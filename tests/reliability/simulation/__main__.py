"""Runs simulated schedules: `python -m tests.reliability.simulation --count 100000 --seed 0` tries that many in all.

`--only NAME…` takes some of them. A schedule is given by its number alone: `--seed N --count 1 --only NAME` repeats one that failed.
"""

import argparse
import importlib
import logging
import time
from collections import Counter

SHARES = {"experiments": 0.3, "searching": 0.1, "serving": 0.3, "replicas": 0.3}


def main() -> int:
    """Tries schedules and prints what happened in them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=SHARES)
    options = parser.parse_args()
    logging.disable()
    chosen = {name: SHARES[name] for name in options.only or SHARES}
    tried = 0
    for name, share in chosen.items():
        simulate = importlib.import_module(f"tests.reliability.simulation.{name}").simulate
        count = round(options.count * share / sum(chosen.values()))
        start, counts = time.process_time(), Counter[str]()
        for seed in range(options.seed, options.seed + count):
            try:
                counts += simulate(seed)
            except Exception as error:
                raise RuntimeError(f"{name}, seed {seed}: {type(error).__name__}: {error}") from error
        tried += count
        print(f"{name:16} {count:>7} schedules {time.process_time() - start:8.1f} s: {dict(counts)}", flush=True)
    print(f"{tried} schedules, nothing wrong")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
