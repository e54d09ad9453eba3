"""Damage to every kind of file that Scena writes: flipped bits, zeroed blocks, cut ends, files that changed places.

Each damage must be reported by `scena verify` and refused, or warned about, by the code that reads the file; or it must be
harmless: what is read is what was written. `python -m tests.reliability.bitrot --count 5000 --seed 1` prints the counts; with
`--run DIR`, files of a copy of that run are damaged as well, and only `scena verify` is asked.
"""

import argparse
import logging
import random
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scena.errors import ScenaError
from scena.experiments.verification import verify_path
from scena.storage import checksums
from tests.faults.damage import cut, flip, zero
from tests.reliability.files import Kind, write_all

DAMAGES = ("flip", "zero", "cut", "swap")
BLOCK = 4096
NOTHING = object()


class Campaign:
    """Two folders with the same files of different content; those of the first one are damaged, and repaired again."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.here, self.other = folder / "here", folder / "other"
        self.kinds = write_all(self.here, 0)
        write_all(self.other, 1)
        self.rng = random.Random(seed)
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.failures: list[str] = []
        self._expected = {kind.name: self._read(kind) for kind in self.kinds}
        for kind in self.kinds:
            assert not self._verify(kind), (kind.name, self._verify(kind))
            assert self._expected[kind.name][1] in ("read", "not read"), (kind.name, self._expected[kind.name])

    def run(self, count: int) -> None:
        """Damages this many files, one at a time, each kind equally often."""
        for number in range(count):
            kind = self.kinds[number % len(self.kinds)]
            self._one(kind, self.rng.choice(kind.files), DAMAGES[number // len(self.kinds) % len(DAMAGES)])

    def _one(self, kind: Kind, name: str, damage: str) -> None:
        path = self.here / name
        good = path.read_bytes()
        damage = self._damage(path, damage, kind.swaps)
        if path.read_bytes() == good:
            self.counts[kind.name]["nothing changed"] += 1
            return
        spoilt = path.read_bytes()
        value, outcome = self._read(kind)
        harmless = kind.read is not None and value == self._expected[kind.name][0]
        path.write_bytes(spoilt)  # in case that reading repaired it
        reported = self._verify(kind)
        path.write_bytes(good)
        if outcome == "read":
            outcome = "harmless" if harmless else "SILENT"
        self.counts[kind.name][outcome] += 1
        self.counts[kind.name][damage] += 1
        self.counts[kind.name]["reported"] += bool(reported)
        if outcome == "SILENT":
            self.failures.append(f"{name}, {damage}: read as if it were sound")
        if not reported and outcome != "harmless":
            self.failures.append(f"{name}, {damage}: {outcome}, but not reported by scena verify")

    def _damage(self, path: Path, damage: str, swaps: bool) -> str:
        if damage == "swap" and swaps:
            path.write_bytes((self.other / path.relative_to(self.here)).read_bytes())
        elif damage == "cut":
            cut(path, self.rng)
        elif damage != "zero" or not zero(path, self.rng, BLOCK):
            flip(path, self.rng)
            return "flip"
        return damage

    def _read(self, kind: Kind) -> tuple[Any, str]:
        """What is read, and whether it is refused, warned about, or read without a word."""
        if kind.read is None:
            return NOTHING, "not read"
        checksums._warn.cache_clear()
        with warnings_of_scena() as warnings:
            try:
                value = kind.read(self.here)
            except (ScenaError, OSError) as error:
                assert not isinstance(error, PermissionError)
                return NOTHING, "refused"
        return value, "warned" if warnings else "read"

    def _verify(self, kind: Kind) -> list[str]:
        with warnings_of_scena():
            found = [checked for checked in verify_path(self.here / kind.where) if checked.problem is not None]
        return [f"{checked.path}: {checked.problem}" for checked in found]


def damage_run(run: Path, count: int, seed: int) -> list[str]:
    """Damages this many files of a run, one at a time; returns what `scena verify` did not report."""
    rng = random.Random(seed)
    files = [path for path in sorted(run.rglob("*")) if path.is_file() and path.stat().st_size and not _unread(path)]
    assert not any(checked.problem for checked in verify_path(run))
    unnoticed = []
    for _ in range(count):
        path = rng.choice(files)
        good = path.read_bytes()
        rng.choice([cut, flip, lambda place, numbers: zero(place, numbers, BLOCK)])(path, rng)
        if path.read_bytes() != good and not any(checked.problem for checked in verify_path(run)):
            unnoticed.append(str(path))
        path.write_bytes(good)
    return unnoticed


def _unread(path: Path) -> bool:
    """Whether it is a log, a lock, or the status of a sender, which is written again."""
    return (
        path.suffix == ".log"
        or path.name.startswith(".")
        or (path.parent.name == "tracking" and path.suffix == ".json")
    )


@contextmanager
def warnings_of_scena() -> Iterator[list[str]]:
    """Collects the warnings that Scena logs in the block, instead of showing them."""
    found: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING:
                found.append(record.getMessage())

    logger, handler = logging.getLogger("scena"), Collect()
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def main() -> int:
    """Runs the campaign and prints what happened to each kind of file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scena-bitrot-") as folder:
        campaign = Campaign(Path(folder), options.seed)
        campaign.run(options.count)
        if options.run is not None:
            shutil.copytree(options.run, Path(folder) / "run")
            with warnings_of_scena():
                unnoticed = damage_run(Path(folder) / "run", options.count // 10, options.seed)
            print(f"{options.count // 10} damages of {options.run}, {len(unnoticed)} not reported {unnoticed[:3]}")
    columns = (*DAMAGES, "reported", "refused", "warned", "harmless", "SILENT")
    print(f"{'':30}", *(f"{column:>9}" for column in columns))
    total: Counter[str] = Counter()
    for name, counts in campaign.counts.items():
        print(f"{name:30}", *(f"{counts[column]:>9}" for column in columns))
        total += counts
    print(f"{'all':30}", *(f"{total[column]:>9}" for column in columns))
    print(f"{sum(total[damage] for damage in DAMAGES)} damages, {len(campaign.failures)} failures")
    for failure in campaign.failures:
        print(failure)
    return bool(campaign.failures)


if __name__ == "__main__":
    raise SystemExit(main())
