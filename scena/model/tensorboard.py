"""Showing what happens inside a network: layers offer arrays, TensorBoard gets them after a validation.

Offering costs nothing in a training step: arrays are only collected when the trainer runs one batch for that purpose.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

_collected: ContextVar[list[tuple["TensorBoardWriter", Any]] | None] = ContextVar("collected", default=None)


class TensorBoardWriter:
    """What to do with an array that a layer offers.

    Args:
        name: the tag in TensorBoard.
        func: called with (name, array, step) while TensorBoard's writer is active; use `tf.summary.image` and its kin in it.
    """

    def __init__(self, name: str, func: Callable[[str, np.ndarray, int], None]) -> None:
        self.name = name
        self.func = func


def add_tensorboard(writer: TensorBoardWriter, value: Any) -> None:
    """Offers a tensor from inside a layer's `call`."""
    collected = _collected.get()
    if collected is not None:
        collected.append((writer, value))


@contextmanager
def collect_tensorboard() -> Iterator[list[tuple[TensorBoardWriter, Any]]]:
    """Collects what layers offer while the block runs (run the network eagerly inside it)."""
    collected: list[tuple[TensorBoardWriter, Any]] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)
