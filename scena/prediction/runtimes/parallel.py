"""Several calls of a converted model at once, each in one thread. That predicts more samples per second, and in less CPU time, than one
call after the other with all threads; a call that is alone is faster with all of them.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from scena.prediction.runtimes.base import Arrays, joined
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

    usual_threads: ClassVar[int | None] = None
    """The threads of a call if the library is not told; None means all cores."""
    copies_weights: ClassVar[bool] = False
    """Whether each of several calls at the same time has the weights in memory once more."""

    def open(self, path: Path, threads: int | None) -> None:
        threads = threads or self.usual_threads
        self.parallel_calls = calls_at_once(available_cores(), threads, size_of(path), copies=self.copies_weights)
        self._path = path
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._running = 0
        self._overlapped = float("-inf")
        self._many = 0
        same = threads is not None or self.parallel_calls == 1
        self._alone = self.load(path, threads, self.parallel_calls if same else 1)
        self._beside = self._alone if same else None

    def load(self, path: Path, threads: int | None, calls: int) -> Call:
        """Opens the model.

        Args:
            path: the file or folder.
            threads: of one call; None is the library's default.
            calls: how many there may be at the same time; more must work, but may wait.
        """
        raise NotImplementedError(f"{type(self).__name__} must open the model: override load(path, threads, calls).")

    @property
    def call_size(self) -> int | None:
        return self.converted.call_size

    def predict(self, inputs: Arrays) -> Arrays:
        size = len(next(iter(inputs.values())))
        if self.call_size is None or size <= self.call_size:
            return self._predict(inputs)
        calls = -(-size // self.call_size)
        limits = [size * number // calls for number in range(calls + 1)]
        found = [
            self._predict({name: values[first:last] for name, values in inputs.items()})
            for first, last in pairwise(limits)
        ]
        return joined(found)

    def _predict(self, inputs: Arrays) -> Arrays:
        if self._beside is self._alone:
            return self._alone(inputs)
        with self._lock:
            alone = self._is_alone()
            self._running += 1
        try:
            return (self._alone if alone else self._opened_beside())(inputs)
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
        beside = self._opened_beside()
        if beside is self._alone:
            return
        seconds = {call: _fastest(call, inputs) for call in (self._alone, beside)}
        if seconds[beside] < WORTH * seconds[self._alone]:
            self._alone = beside

    def _is_alone(self) -> bool:
        """Whether no other call runs, nor is expected."""
        now = time.monotonic()
        if self._running:
            self._overlapped = now
            return False
        return not self._many and now - self._overlapped > MEMORY

    def _opened_beside(self) -> Call:
        """What several calls at once use. Calls that run already do not wait for it to be opened."""
        if self._beside is None:
            with self._opening:
                self._beside = self._beside or self.load(self._path, 1, self.parallel_calls)
        return self._beside


def _fastest(call: Call, inputs: Arrays) -> float:
    """Seconds of the fastest of some calls; of a slow one a single call has to do."""
    found: list[float] = []
    while len(found) < 2 or (len(found) < 6 and found[-1] < 0.05):
        started = time.perf_counter()
        call(inputs)
        found.append(time.perf_counter() - started)
    return min(found)


def exclusive(create: Callable[[], Call], most: int, first: Call) -> Call:
    """A function for objects that serve one call at a time: calls at the same time get one each, and wait if there are more than `most`.

    Args:
        create: makes another one.
        most: how many there may be.
        first: one of them.
    """
    idle, free = [first], threading.Semaphore(most)

    def call(inputs: Arrays) -> Arrays:
        with free:
            try:
                chosen = idle.pop()
            except IndexError:
                chosen = create()
            outputs = chosen(inputs)
            idle.append(chosen)  # not after an error: nobody knows what state it left
            return outputs

    return call


def calls_at_once(cores: int, threads: int | None, size: int, *, copies: bool) -> int:
    """How many calls at the same time pay off, each with so many threads (None: one each, and all for a call that is alone), for a model
    of `size` bytes.
    """
    if threads is None and size > LARGEST:
        return 1
    calls = max(1, cores // (threads or 1))
    return min(calls, 1 + LARGEST // max(1, size)) if copies else calls


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")))
