"""How fast the contenders of benchmarks/pipeline.py are: each in processes of its own, all but one contender halted.

The contenders take turns of a twentieth of a second: the next one is continued (SIGCONT), the others stand still (SIGSTOP) in the middle
of what they do, and nothing is lost. A virtual machine shares its cores with others: beside a busy neighbour the same loop takes up to
1.7 times as long, in bursts of tenths of a second, and nothing in the machine shows it. What a contender can do shows in its best turns.

python -m benchmarks.pipeline_turns NAME TASK UNITS LOOPS BATCH_SIZE makes batches until it is killed.
"""

import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.pipeline_peers import contenders
from benchmarks.pipeline_work import Amount, Done

_WARM_BATCHES, _WARM_SECONDS, _PATIENCE = 3, 1.0, 120.0
BEST_SHARE = 0.03
"""The share of the turns that are the best ones."""


class Running:
    """A running contender; it stands still but for its turns."""

    def __init__(self, name: str, task: str, amount: Amount, batch_size: int, folder: Path) -> None:
        self.name = name
        self.turns: list[float] = []
        """Units of work per second, in each turn."""
        self._log = folder / f"{name}.log"
        self._folder = folder / name
        self._folder.mkdir()
        self._warm = _WARM_BATCHES * batch_size * amount.units
        words = [name, task, *map(str, amount), str(batch_size)]
        command = [sys.executable, "-m", "benchmarks.pipeline_turns", *words]
        environment = {**os.environ, Done.FOLDER: str(self._folder)}
        with self._log.open("wb") as log:
            self._started = [
                subprocess.Popen(command, stdout=log, stderr=log, env=environment)
                for _ in range(contenders()[name].copies)
            ]
        self._processes = [process.pid for process in self._started]

    def __enter__(self) -> Self:
        begun = time.monotonic()
        while Done.total(self._folder) < self._warm:
            ended = any(process.poll() is not None for process in self._started)
            if ended or time.monotonic() - begun > _PATIENCE:
                raise SystemExit(f"{self.name} made no batches:\n{self._log.read_text()}")
            time.sleep(0.05)
        time.sleep(_WARM_SECONDS)
        self._processes = [found for process in self._started for found in _with_descendants(process.pid)]
        self._signal(signal.SIGSTOP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signal(signal.SIGKILL)
        for process in self._started:
            process.wait()

    def turn(self, seconds: float) -> None:
        """Lets it work for so long."""
        before, begun = Done.total(self._folder), time.perf_counter()
        self._signal(signal.SIGCONT)
        time.sleep(seconds)
        self._signal(signal.SIGSTOP)
        needed = time.perf_counter() - begun
        self.turns.append((Done.total(self._folder) - before) / needed)

    def _signal(self, number: int) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)


def turns_of_round(
    names: Sequence[str], task: str, amount: Amount, batch_size: int, turns: int, seconds: float
) -> list[list[float]]:
    """Units of work per second of each contender, in so many turns in new processes."""
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="scena-benchmark-")))
        found = [running.enter_context(Running(name, task, amount, batch_size, folder)) for name in names]
        for _ in range(turns):
            for contender in random.sample(found, len(found)):
                contender.turn(seconds)
        return [contender.turns for contender in found]


def best(turns: Sequence[float]) -> float:
    """The speed in the best turns."""
    count = max(1, round(BEST_SHARE * len(turns)))
    return statistics.median(sorted(turns)[-count:])


def _with_descendants(process: int) -> list[int]:
    children = [
        int(child) for path in Path(f"/proc/{process}/task").glob("*/children") for child in path.read_text().split()
    ]
    return [process, *(found for child in children for found in _with_descendants(child))]


def main() -> None:
    """Makes batches and throws them away."""
    name, task, units, loops, batch_size = sys.argv[1:]
    contender = contenders()[name]
    with contender.how(task, Amount(int(units), int(loops)), int(batch_size), contender.workers) as batches:
        for _ in batches:
            pass


if __name__ == "__main__":
    main()
