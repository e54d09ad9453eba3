"""Dynamic batching: samples of requests that arrive while the model is busy are predicted together, in one thread."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from scena.data.sample import Sample

Predict = Callable[[Sequence[Sample]], list[Sample]]


class QueueFullError(RuntimeError):
    """Too many samples wait already."""


class ClosedError(RuntimeError):
    """The service is being shut down."""


class _Group:
    """The samples of one request."""

    __slots__ = ("answer", "samples")

    def __init__(self, samples: list[Sample], answer: Any) -> None:
        self.samples = samples
        self.answer = answer


class Batcher:
    """Collects groups of samples and predicts them in batches.

    Args:
        predict: predicts samples one to one, in order.
        max_batch: samples in a batch at most; a larger group is a batch of its own.
        max_delay: seconds without a new group after which a batch begins. Groups that keep coming are waited for as long as the
            last batch took, so that those who were answered together and ask again are answered together again.
        max_queue: samples that may wait.
        observe: called with the number of samples of each batch.
    """

    def __init__(
        self,
        predict: Predict,
        *,
        max_batch: int,
        max_delay: float,
        max_queue: int,
        observe: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._predict = predict
        self._max_batch = max_batch
        self._max_delay = max_delay
        self._max_queue = max_queue
        self._observe = observe
        self.notify: Callable[[Callable[[], None]], object] = lambda deliver: deliver()
        """Calls what delivers the answers of a batch; an event loop sets its own `call_soon_threadsafe`."""
        self._groups: queue.SimpleQueue[_Group | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False
        self._took = 0.0
        self._thread = threading.Thread(target=self._run, name="scena-batcher", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Samples that wait for their turn."""
        return self._waiting

    def submit(self, samples: list[Sample], answer: Any = None) -> Any:
        """Puts the samples of a request in the queue and returns the future of its answer.

        Args:
            samples: what to predict.
            answer: the future to use, for example one of an event loop; default: a `concurrent.futures.Future`.

        Raises:
            QueueFullError: too many wait already.
            ClosedError: the service is being shut down.
        """
        group = _Group(samples, Future() if answer is None else answer)
        with self._lock:
            if self._closed:
                raise ClosedError
            # one group may always wait, however large
            if self._waiting and self._waiting + len(samples) > self._max_queue:
                raise QueueFullError
            self._waiting += len(samples)
            self._groups.put(group)
        return group.answer

    def close(self) -> None:
        """Predicts what waits, then ends."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._groups.put(None)
        self._thread.join()

    def _run(self) -> None:
        carried: _Group | None = None
        while (group := carried or self._groups.get()) is not None:
            carried = None
            batch, size = [group], len(group.samples)
            latest = time.monotonic() + max(self._max_delay, self._took)
            while size < self._max_batch and (following := self._next(latest)) is not None:
                if size + len(following.samples) > self._max_batch:
                    carried = following
                    break
                batch.append(following)
                size += len(following.samples)
            begun = time.monotonic()
            self._answer(batch)
            self._took = time.monotonic() - begun

    def _next(self, latest: float) -> _Group | None:
        """The next group, if it comes soon after the one before it."""
        try:
            group = self._groups.get(timeout=max(0.0, min(self._max_delay, latest - time.monotonic())))
        except queue.Empty:
            return None
        if group is None:
            self._groups.put(None)  # the end, for later
        return group

    def _answer(self, batch: list[_Group]) -> None:
        with self._lock:
            self._waiting -= sum(len(group.samples) for group in batch)
        batch = [group for group in batch if not group.answer.cancelled()]  # nobody waits for those any more
        if not batch:
            return
        samples = [sample for group in batch for sample in group.samples]
        self._observe(len(samples))
        answers = self._predicted(samples)
        if isinstance(answers, Exception):  # one bad sample must not harm the others
            alone = len(batch) == 1
            outcomes: list[list[Sample] | Exception] = [
                answers if alone else self._predicted(group.samples) for group in batch
            ]
        else:
            following = iter(answers)
            outcomes = [[next(following) for _ in group.samples] for group in batch]
        pairs = list(zip(batch, outcomes, strict=True))
        self.notify(lambda: _deliver(pairs))

    def _predicted(self, samples: list[Sample]) -> list[Sample] | Exception:
        try:
            predicted = self._predict(samples)
        except Exception as error:
            return error
        if len(predicted) != len(samples):
            return RuntimeError(f"{len(samples)} samples gave {len(predicted)} answers")
        return predicted


def _deliver(pairs: list[tuple[_Group, list[Sample] | Exception]]) -> None:
    for group, outcome in pairs:
        if group.answer.done():
            continue
        if isinstance(outcome, Exception):
            group.answer.set_exception(outcome)
        else:
            group.answer.set_result(outcome)
