"""How fast the contenders of benchmarks/pipeline.py are: each in processes of its own, all but one contender halted.

The contenders take short turns: the next one is continued (SIGCONT), the others stand still (SIGSTOP) in the middle of what they do.
Nothing is lost between two turns. A turn begins when the machine is quiet, and is a quiet one if it still is at its end
(benchmarks/quiet.py): what the neighbours of a virtual machine take away shall not be measured.

python -m benchmarks.pipeline_turns NAME TASK LOOPS BATCH_SIZE makes batches until it is killed.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from benchmarks.pipeline_peers import contenders
from benchmarks.pipeline_work import Done
from benchmarks.quiet import Host

_WARM_BATCHES, _WARM_SECONDS, _PATIENCE = 3, 1.0, 120.0


class Turn(NamedTuple):
    """What a contender did in a turn."""

    samples: int
    seconds: float
    quiet: bool


class Contender:
    """A running contender; it stands still but for its turns."""

    def __init__(self, name: str, task: str, loops: int, batch_size: int, folder: Path) -> None:
        self.name = name
        self.turns: list[Turn] = []
        self._log = folder / f"{name}.log"
        self._folder = folder / name
        self._folder.mkdir()
        self._warm = _WARM_BATCHES * batch_size
        words = [name, task, str(loops), str(batch_size)]
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

    def turn(self, seconds: float, host: Host, patience: float) -> None:
        """Lets it work for so long, in a quiet moment if there is one."""
        quiet = host.wait(patience)
        before, begun = Done.total(self._folder), time.perf_counter()
        self._signal(signal.SIGCONT)
        time.sleep(seconds)
        self._signal(signal.SIGSTOP)
        needed = time.perf_counter() - begun
        made = Done.total(self._folder) - before
        self.turns.append(Turn(made, needed, quiet and host.is_quiet()))

    def quiet(self) -> int:
        """How many of its turns were quiet."""
        return sum(turn.quiet for turn in self.turns)

    def speed(self) -> float:
        """Samples per second in quiet turns; in all turns if there was none."""
        counted = [turn for turn in self.turns if turn.quiet] or self.turns
        return sum(turn.samples for turn in counted) / sum(turn.seconds for turn in counted)

    def _signal(self, number: int) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)


class Round(NamedTuple):
    """What came out of a round."""

    speeds: list[float]
    """Samples per second of each contender."""
    quiet: int
    """Quiet turns of the contender that had the fewest."""


def run_round(
    host: Host, names: Sequence[str], work: tuple[str, int, int], turns: int, seconds: float, patience: float
) -> Round:
    """All contenders in new processes, until each had so many quiet turns, or three times as many in all."""
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="scena-benchmark-")))
        found = [running.enter_context(Contender(name, *work, folder)) for name in names]
        for _ in range(3 * turns):
            for contender in random.sample(found, len(found)):
                if contender.quiet() < turns:
                    contender.turn(seconds, host, patience)
        return Round([contender.speed() for contender in found], min(contender.quiet() for contender in found))


def _with_descendants(process: int) -> list[int]:
    children = [
        int(child) for path in Path(f"/proc/{process}/task").glob("*/children") for child in path.read_text().split()
    ]
    return [process, *(found for child in children for found in _with_descendants(child))]


def main() -> None:
    """Makes batches and throws them away."""
    name, task, loops, batch_size = sys.argv[1:]
    contender = contenders()[name]
    with contender.how(task, int(loops), int(batch_size), contender.workers) as batches:
        for _ in batches:
            pass


if __name__ == "__main__":
    main()
