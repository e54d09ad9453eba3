"""Batches, streams of them, and the cursor: the position of a stream after a batch."""

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scena.data.sample import Sample

if TYPE_CHECKING:
    from scena.data.stages.context import PipelineContext

logger = logging.getLogger("scena.data")

Arrays = dict[str, np.ndarray[Any, Any]]
BLOCK_SECONDS = 0.1


@dataclass(slots=True)
class Cursor:
    """Where a stream of batches stands. `Cursor()` is the start."""

    epoch: int = 0
    """The epoch of the next batch."""
    batch: int = 0
    """Batches of this epoch that were handed out."""
    samples: int = 0
    """Samples of this epoch that were handed out."""
    state: Any = field(default=None, repr=False)
    """What else a restart needs; None where counting is enough."""

    def to_json(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "batch": self.batch, "samples": self.samples, "state": self.state}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Cursor":
        return cls(int(value["epoch"]), int(value["batch"]), int(value["samples"]), value.get("state"))


class Batch:
    """Arrays of several samples, stacked and padded.

    Attributes:
        inputs: arrays by name, each with a leading batch dimension (empty in mode TARGETS).
        targets: the same for targets (empty in mode PREDICTION).
        meta: the meta of each sample.
        size: number of samples.
        epoch: the epoch it belongs to.
        cursor: the position right after this batch.
        total: samples of the whole batch, if several processes share it; else `size`.
        counted: how many of these samples count; 0 if they are only here to keep step with other processes.
    """

    __slots__ = ("counted", "cursor", "epoch", "inputs", "meta", "size", "targets", "total")

    def __init__(self, inputs: Arrays, targets: Arrays, meta: list[Any], size: int, cursor: Cursor) -> None:
        self.inputs = inputs
        self.targets = targets
        self.meta = meta
        self.size = self.total = self.counted = size
        self.epoch = cursor.epoch
        self.cursor = cursor

    def samples(self, outputs: Arrays | None = None) -> Iterator[Sample]:
        """The batch as single samples (padded as they are in the batch), with the model's outputs if they are given."""
        for row in range(self.size):
            yield Sample(
                inputs={key: array[row] for key, array in self.inputs.items()},
                targets={key: array[row] for key, array in self.targets.items()},
                outputs=None if outputs is None else {key: array[row] for key, array in outputs.items()},
                meta=self.meta[row] if row < len(self.meta) else None,
            )

    def __iter__(self) -> Iterator[Arrays]:
        """Inputs and targets, so that a batch unpacks: `for inputs, targets in batches`."""
        yield self.inputs
        yield self.targets

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each array; batches with equal shapes can be stacked."""
        return (*(a.shape for a in self.inputs.values()), *(a.shape for a in self.targets.values()))

    def __repr__(self) -> str:
        shapes = {key: array.shape for key, array in {**self.inputs, **self.targets}.items()}
        return f"Batch({self.size} samples, {shapes}, {self.cursor})"


class BatchStream:
    """Batches in order. `cursor` is the position after the last batch that was handed out. Close it, or use `with`."""

    def __init__(self, context: "PipelineContext", batches: Generator[Batch, None, None], cursor: Cursor,
                 closed: Callable[[], None]) -> None:  # fmt: skip
        self._context = context
        self._skipped_before = len(context.skipped.identities) if context.skipped else 0
        self._batches = batches
        self._closed: Callable[[], None] | None = closed
        self._ahead: deque[Batch] = deque()
        self._thread: ThreadPoolExecutor | None = None
        self._making: Future[None] | None = None
        self._failure: Exception | None = None
        self.cursor = cursor

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        if not self._available():
            raise self._failure or StopIteration
        batch = self._ahead.popleft()
        self.cursor = batch.cursor
        return batch

    def take_block(self, max_batches: int) -> list[Batch]:
        """Up to `max_batches` consecutive batches of one epoch with equal shapes; an empty list at the end.

        It waits for one batch, and then no longer than a moment for more: a slow pipeline gives short blocks. An error is raised after
        the batches that were made before it.
        """
        block: list[Batch] = []
        deadline = time.monotonic() + BLOCK_SECONDS
        while len(block) < max_batches and (not block or time.monotonic() < deadline) and self._available():
            if block and (self._ahead[0].shapes() != block[0].shapes() or self._ahead[0].epoch != block[0].epoch):
                break
            block.append(next(self))
        if not block and self._failure is not None:
            raise self._failure
        return block

    def make_ahead(self, batches: int) -> None:
        """Makes the next batches in a thread while the caller computes.

        Not with a fixed number of processes: workers are ahead anyway, and without any a debugger is to find all in one thread.
        """
        if self._context.pipeline.num_processes is None and self._making is None:
            self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="scena-batches")
            self._making = self._thread.submit(self._make, batches)

    def _available(self) -> bool:
        """Whether there is a batch, if need be after making it."""
        if self._making is not None:
            self._making.result()
            self._making = None
        if not self._ahead and self._failure is None:
            self._make(1)
        return bool(self._ahead)

    def _make(self, batches: int) -> None:
        deadline = time.monotonic() + BLOCK_SECONDS
        try:
            while len(self._ahead) < batches and time.monotonic() < deadline:
                self._ahead.append(next(self._batches))
        except StopIteration:
            pass
        except Exception as error:
            self._failure = error

    @property
    def skipped(self) -> list[str]:
        """The samples skipped because of errors (on_error=skip), one line each."""
        return self._context.skipped.identities[self._skipped_before :] if self._context.skipped else []

    def close(self) -> None:
        """Ends the stream and frees what it holds."""
        if self._closed is None:
            return
        if self._thread is not None:
            self._thread.shutdown()
        self._ahead.clear()
        self._batches.close()
        self._closed()
        self._closed = None
        if count := len(self.skipped):
            which, mode = "sample" if count == 1 else "samples", self._context.mode.value
            logger.warning("Skipped %d %s of the %s data because of errors (on_error=skip).", count, which, mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
