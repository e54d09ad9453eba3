"""The steps of a training on one device: training batches become step blocks. `ReplicaGroup` does the same on several devices."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from scena.backends.base import Arrays
from scena.data.pipeline import BatchStream, DataPipeline
from scena.data.sample import Batch, Cursor

LONGEST_BLOCK = 32
BLOCK_SECONDS = 0.05
"""Target time of a step block: long enough to hide the cost of Python, short enough to react to a signal."""

Validation = tuple[dict[str, float], dict[str, Any]]
"""Numbers, and results of metrics for TensorBoard."""


def stacked(block: list[Batch], part: str) -> Arrays:
    """The inputs or targets of a step block as arrays with a leading axis of batches."""
    first: dict[str, Any] = getattr(block[0], part)
    if len(block) == 1:
        return {name: array[np.newaxis] for name, array in first.items()}
    return {name: np.stack([getattr(batch, part)[name] for batch in block]) for name in first}


class Steps:
    """Reads training batches and takes steps with them."""

    distributed = False
    """Whether several replicas share each batch."""
    asked_to_stop = False
    """Whether another process received a signal to stop."""

    def __init__(self, engine: Any, train_data: DataPipeline) -> None:
        self._engine = engine
        self._train_data = train_data
        self._stream: BatchStream | None = None

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Lets other processes exit when the block ends, however it ends."""
        yield

    def begin(self) -> None:
        """Called before the first step, when all state is restored."""

    def retrace(self) -> None:
        """Compiles again, because a layer has replaced a tensor."""
        self._engine.retrace()

    def take(self, count: int, cursor: Cursor, *, repeat: bool) -> list[Batch]:
        """The next batches, at most `count`; opens the training data at the cursor if it is not open."""
        if self._stream is None:
            self._stream = self._open(cursor, repeat)
        return self._stream.take_block(count)

    def _open(self, cursor: Cursor, repeat: bool) -> BatchStream:
        return self._train_data.stream(cursor, repeat=repeat)

    def close(self) -> None:
        """Closes the training data."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def train(self, block: list[Batch]) -> list[dict[str, float]]:
        """Takes one step for each batch; returns the logs of each."""
        # loaded first: copying releases the GIL, and the thread that prepares the next block would then hold it for long
        inputs, targets = self._engine.load(stacked(block, "inputs"), stacked(block, "targets"))
        self._make_ahead(block)
        logs: list[dict[str, float]] = self._engine.train(inputs, targets)
        return logs

    def _make_ahead(self, block: list[Batch]) -> None:
        """Prepares the next block during the steps of this one."""
        if self._stream is not None:
            self._stream.make_ahead(len(block))

    def validate(self, pipeline: DataPipeline, locally: Callable[[DataPipeline], Validation]) -> Validation:
        """Validates with the current weights; `locally` does it in this process. Metrics must have been reset."""
        return locally(pipeline)

    def changed(self) -> None:
        """Called when weights or metrics were changed outside of a step."""
