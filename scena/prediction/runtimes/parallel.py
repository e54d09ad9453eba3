"""Several calls of a converted model at once, each in one thread. That predicts more samples per second, and in less CPU time, than one
call after the other with all threads; a call that is alone is faster with all of them.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scena.prediction.runtimes.base import Arrays
from scena.prediction.runtimes.converted import ConvertedRuntime

Call = Callable[[Arrays], Arrays]
LARGEST = 100_000_000
"""A larger model is not opened a second time: it would take much memory, and its calls keep all cores busy."""
MEMORY = 0.1
"""Seconds after two calls at once in which more are expected."""
WORTH = 1.5
"""A service uses all threads for a call that is alone if they make it so many times as fast: threads that wait for the next call keep
cores busy."""


class ParallelRuntime(ConvertedRuntime):
    """Opens the model with all threads for one call at a time, and once more, when it is needed, with one thread for each of several."""

    def open(self, path: Path, threads: int | None) -> None:
        cores = available_cores()
        self.parallel_calls = max(1, cores // threads) if threads else cores if size_of(path) <= LARGEST else 1
        self._path = path
        self._lock = threading.Lock()
        self._running = 0
        self._overlapped = float("-inf")
        self._many = 0
        self._alone = self.load(path, threads, 1)
        self._beside = self._alone if threads or self.parallel_calls == 1 else None

    def load(self, path: Path, threads: int | None, calls: int) -> Call:
        """Opens the model.

        Args:
            path: the file or folder.
            threads: of one call; None is the library's default.
            calls: how many there may be at the same time; more must work, but may wait.
        """
        raise NotImplementedError(f"{type(self).__name__} must open the model: override load(path, threads, calls).")

    def predict(self, inputs: Arrays) -> Arrays:
        with self._lock:
            call = self._chosen()
            self._running += 1
        try:
            return call(inputs)
        finally:
            with self._lock:
                self._running -= 1

    @contextmanager
    def many_calls(self) -> Iterator[None]:
        with self._lock:
            self._many += 1
        try:
            yield
        finally:
            with self._lock:
                self._many -= 1

    def prepare_service(self, inputs: Arrays) -> None:
        with self._lock:
            beside = self._opened_beside()
        if beside is self._alone:
            return
        seconds = {call: _fastest(call, inputs) for call in (self._alone, beside)}
        if seconds[beside] < WORTH * seconds[self._alone]:
            self._alone = beside

    def _chosen(self) -> Call:
        now = time.monotonic()
        if self._running:
            self._overlapped = now
        elif not self._many and now - self._overlapped > MEMORY:
            return self._alone
        return self._opened_beside()

    def _opened_beside(self) -> Call:
        if self._beside is None:
            self._beside = self.load(self._path, 1, self.parallel_calls)
        return self._beside


def _fastest(call: Call, inputs: Arrays) -> float:
    """Seconds of the fastest of some calls; of a slow one a single call has to do."""
    found: list[float] = []
    while len(found) < 2 or (len(found) < 6 and found[-1] < 0.05):
        started = time.perf_counter()
        call(inputs)
        found.append(time.perf_counter() - started)
    return min(found)


def exclusive(create: Callable[[], Call]) -> Call:
    """A function for objects that serve one call at a time: calls at the same time get one each."""
    idle: list[Call] = []

    def call(inputs: Arrays) -> Arrays:
        try:
            chosen = idle.pop()
        except IndexError:
            chosen = create()
        outputs = chosen(inputs)
        idle.append(chosen)
        return outputs

    return call


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")))
