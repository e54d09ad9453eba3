"""Computing in half precision: weights, losses and outputs stay float32."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
from keras import ops

HALF = ("float16", "bfloat16")


@contextmanager
def precision_policy(name: str) -> Iterator[None]:
    """Layers that are created inside the block compute as this Keras policy says."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def full_precision(outputs: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a graph with those in half precision as float32, so that losses, metrics and users get full numbers."""
    return {
        name: ops.cast(value, "float32") if keras.backend.standardize_dtype(value.dtype) in HALF else value
        for name, value in outputs.items()
    }
