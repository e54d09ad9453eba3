"""How fast the contenders of benchmarks/pipeline.py are: each in a process of its own, all but one of them halted.

A virtual machine changes its speed by a third within seconds, whatever runs on it. So the contenders take short turns:
the next one is continued (SIGCONT), the others stand still (SIGSTOP) in the middle of what they do, and all see the same good and bad
times. Nothing is lost between two turns, so that a batch may take longer than one.

python -m benchmarks.pipeline_turns NAME TASK LOOPS BATCH_SIZE COUNTER_FILE makes batches until it is killed.
"""

import contextlib
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.pipeline_peers import contenders

_COUNT = struct.Struct("<q")
_WARM_BATCHES, _WARM_SECONDS, _PATIENCE = 3, 1.0, 120.0


class Contender:
    """A running contender; it stands still but for its turns."""

    def __init__(self, name: str, task: str, loops: int, batch_size: int, folder: Path) -> None:
        self.name = name
        self.batches = 0
        self.seconds = 0.0
        self._counter = folder / f"{name}.count"
        self._counter.write_bytes(_COUNT.pack(0))
        self._log = folder / f"{name}.log"
        words = [name, task, str(loops), str(batch_size), str(self._counter)]
        with self._log.open("wb") as log:
            command = [sys.executable, "-m", "benchmarks.pipeline_turns", *words]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._processes = [self._process.pid]

    def __enter__(self) -> Self:
        begun = time.monotonic()
        while self._count() < _WARM_BATCHES:
            if self._process.poll() is not None or time.monotonic() - begun > _PATIENCE:
                raise SystemExit(f"{self.name} made no batches:\n{self._log.read_text()}")
            time.sleep(0.05)
        time.sleep(_WARM_SECONDS)
        self._processes = _with_descendants(self._process.pid)
        self._signal(signal.SIGSTOP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signal(signal.SIGKILL)
        self._process.wait()

    def turn(self, seconds: float) -> None:
        """Lets it work for so long."""
        before, begun = self._count(), time.perf_counter()
        self._signal(signal.SIGCONT)
        time.sleep(seconds)
        self._signal(signal.SIGSTOP)
        self.seconds += time.perf_counter() - begun
        self.batches += self._count() - before

    def _count(self) -> int:
        return int(_COUNT.unpack(self._counter.read_bytes())[0])

    def _signal(self, number: int) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)


def speeds(names: Sequence[str], task: str, loops: int, batch_size: int, turns: int, seconds: float) -> list[float]:
    """Batches per second of each, from so many turns of each in new processes."""
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="scena-benchmark-")))
        found = [running.enter_context(Contender(name, task, loops, batch_size, folder)) for name in names]
        for _ in range(turns):
            for contender in random.sample(found, len(found)):
                contender.turn(seconds)
        return [contender.batches / contender.seconds for contender in found]


def _with_descendants(process: int) -> list[int]:
    children = [
        int(child) for path in Path(f"/proc/{process}/task").glob("*/children") for child in path.read_text().split()
    ]
    return [process, *(found for child in children for found in _with_descendants(child))]


def main() -> None:
    """Makes batches and counts them where the benchmark looks."""
    name, task, loops, batch_size, file = sys.argv[1:]
    how, workers = contenders(tensorflow=True)[name]
    with open(file, "r+b") as opened, how(task, int(loops), int(batch_size), workers) as batches:
        counter = mmap.mmap(opened.fileno(), _COUNT.size)
        for count, _ in enumerate(batches, 1):
            counter[:] = _COUNT.pack(count)


if __name__ == "__main__":
    main()
