"""Dynamic batching: samples of requests that arrive while the model is busy are predicted together, in one or a few threads.

A sample that fails becomes an exception in its place; the others are predicted.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from scena.data.sample import Sample

Predict = Callable[[Sequence[Sample]], list[Sample]]
Outcome = Sample | Exception
"""A predicted sample, or its error."""


class QueueFullError(RuntimeError):
    """Too many samples are queued already."""


class ClosedError(RuntimeError):
    """The service is being shut down."""


class CountError(RuntimeError):
    """Samples and answers cannot be matched: the pipeline merges, splits or drops samples."""


@dataclass(slots=True, eq=False)
class _Group:
    """The samples of one request."""

    samples: list[Sample]
    answer: Any


def _start_thread(run: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=run, name="scena-batcher", daemon=True)
    thread.start()
    return thread


class Batcher:
    """Collects groups of samples and predicts them in batches.

    Args:
        predict: predicts samples one to one, in order.
        max_batch: largest batch; a larger group is predicted in several batches, as long as its client waits.
        max_delay: seconds without a new group after which a batch begins. While groups keep arriving, it waits as long as the last
            batch took, so that clients that were batched together are batched together again.
        max_queue: samples that may be queued.
        observe: called with the number of samples of each batch.
        threads: how many batches are predicted at the same time.
        clock, make_queue, start: time, queue and thread; a simulation gives others.
    """

    def __init__(
        self,
        predict: Predict,
        *,
        max_batch: int,
        max_delay: float,
        max_queue: int,
        observe: Callable[[int], None] = lambda size: None,
        threads: int = 1,
        clock: Callable[[], float] = time.monotonic,
        make_queue: Callable[[], Any] = queue.SimpleQueue,
        start: Callable[[Callable[[], None]], Any] = _start_thread,
    ) -> None:
        self._predict = predict
        self._max_batch = max_batch
        self._max_delay = max_delay
        self._max_queue = max_queue
        self._observe = observe
        self.notify: Callable[[Callable[[], None]], object] = lambda deliver: deliver()
        """Calls the function that delivers the results of a batch; an event loop sets its `call_soon_threadsafe`."""
        self._clock = clock
        self._groups: queue.SimpleQueue[_Group | None] = make_queue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False
        self._took = 0.0
        self._collecting = threading.Lock()
        self._carried: _Group | None = None
        self._threads = [start(self._run) for _ in range(threads)]

    @property
    def waiting(self) -> int:
        return self._waiting

    def submit(self, samples: list[Sample], answer: Any = None) -> Any:
        """Queues the samples of a request. Returns the future of its results: `answer`, for example one of an event loop, or a new
        one.

        Raises QueueFullError, or ClosedError once the service is being shut down.
        """
        group = _Group(samples, Future() if answer is None else answer)
        with self._lock:
            if self._closed:
                raise ClosedError
            # one group is always accepted, however large
            if self._waiting and self._waiting + len(samples) > self._max_queue:
                raise QueueFullError
            self._waiting += len(samples)
            self._groups.put(group)
        return group.answer

    def close(self) -> None:
        """Predicts the queued samples, then ends."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._groups.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._collecting:  # two threads that collect at the same time would get half a batch each
                batch = self._collect()
            if not batch:
                return
            begun = self._clock()
            self._answer(batch)
            self._took = self._clock() - begun

    def _collect(self) -> list[_Group]:
        """The groups of the next batch; none at the end."""
        group, self._carried = self._carried or self._groups.get(), None
        if group is None:
            self._groups.put(None)  # for the other threads
            return []
        batch, size = [group], len(group.samples)
        latest = self._clock() + max(self._max_delay, self._took)
        while size < self._max_batch and (following := self._next(latest)) is not None:
            if size + len(following.samples) > self._max_batch:
                self._carried = following
                break
            batch.append(following)
            size += len(following.samples)
        return batch

    def _next(self, latest: float) -> _Group | None:
        """The next group, if it arrives soon after the previous one."""
        try:
            group = self._groups.get(timeout=max(0.0, min(self._max_delay, latest - self._clock())))
        except queue.Empty:
            return None
        if group is None:
            self._groups.put(None)  # the end, for later
        return group

    def _answer(self, batch: list[_Group]) -> None:
        with self._lock:
            self._waiting -= sum(len(group.samples) for group in batch)
        batch = [group for group in batch if not group.answer.cancelled()]  # their clients are gone
        if not batch:
            return
        outcomes = self._in_batches(batch[0]) if len(batch) == 1 else self._together(batch)
        pairs = list(zip(batch, outcomes, strict=True))
        self.notify(lambda: _deliver(pairs))

    def _together(self, batch: list[_Group]) -> list[list[Outcome]]:
        predicted = self._predicted([sample for group in batch for sample in group.samples])
        if isinstance(predicted, Exception):  # one group must not affect the others
            return [outcomes for group in batch for outcomes in self._in_batches(group)]
        following = iter(predicted)
        return [[next(following) for _ in group.samples] for group in batch]

    def _in_batches(self, group: _Group) -> list[list[Outcome]]:
        outcomes: list[Outcome] = []
        for start in range(0, len(group.samples), self._max_batch):
            if group.answer.cancelled():  # timed out
                break
            samples = group.samples[start : start + self._max_batch]
            predicted = self._predicted(samples)
            if isinstance(predicted, CountError) or (isinstance(predicted, Exception) and len(samples) == 1):
                outcomes += [predicted] * len(samples)
            elif isinstance(predicted, Exception):  # one sample must not affect the others
                for sample in samples:
                    alone = self._predicted([sample])
                    outcomes += [alone] if isinstance(alone, Exception) else alone
            else:
                outcomes += predicted
        return [outcomes]

    def _predicted(self, samples: list[Sample]) -> list[Sample] | Exception:
        self._observe(len(samples))
        try:
            predicted = self._predict(samples)
        except Exception as error:
            return error
        if len(predicted) != len(samples):
            return CountError(f"{len(samples)} samples gave {len(predicted)} answers")
        return predicted


def _deliver(pairs: list[tuple[_Group, list[Outcome]]]) -> None:
    for group, outcomes in pairs:
        if not group.answer.done():
            group.answer.set_result(outcomes)
