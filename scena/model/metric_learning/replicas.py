"""The replica step that runs in this thread, and sums over a batch that replicas share."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras

_running = threading.local()


@contextmanager
def replica_step(step: Any) -> Iterator[None]:
    """While the block runs, this thread takes a step of one replica; `step.share` is its share of the whole batch."""
    _running.step = step
    try:
        yield
    finally:
        _running.step = None


def running_step() -> Any:
    """The step that this thread takes, if it is one of a replica; else None."""
    return getattr(_running, "step", None)


def whole_over_part() -> Any:
    """The size of the whole batch divided by the part of this replica; 1 on a single device.

    Changes of variables that are not trained are averaged by share; a sum times this factor stays a sum.
    """
    if keras.backend.backend() != "tensorflow":
        return 1.0
    import tensorflow as tf

    step = running_step()
    if step is not None:
        return tf.math.divide_no_nan(1.0, step.share)
    return float(tf.distribute.get_strategy().num_replicas_in_sync)
