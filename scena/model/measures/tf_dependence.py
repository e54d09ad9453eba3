"""Which tensors of a TensorFlow graph depend on others: exact, since a graph knows the inputs of each operation."""

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf


def tracing() -> bool:
    """Whether operations are being recorded in a graph rather than run."""
    return not tf.executing_eagerly()


def stand_in(spec: Any, like: Any) -> tf.Tensor:
    """A tensor of this kind whose value means nothing, for as many samples as `like` has.

    It has a value because TensorFlow runs some operations unasked, such as the checks of shapes in losses.
    """
    shape = [tf.shape(like)[0], *(1 if size is None else size for size in spec.shape[1:])]
    made = tf.zeros(shape, keras.backend.standardize_dtype(spec.dtype))
    return tf.ensure_shape(made, spec.shape)


def depends(value: Any, origins: Iterable[tf.Tensor]) -> bool:
    """Whether a tensor, or one in a nested value, is computed from any of the origins."""
    wanted = {origin.op.name for origin in origins}
    waiting = [leaf.op for leaf in keras.tree.flatten(value) if tf.is_symbolic_tensor(leaf)]
    seen: set[str] = set()
    while waiting:
        operation = waiting.pop()
        if operation.name in wanted:
            return True
        if operation.name not in seen:
            seen.add(operation.name)
            waiting += [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
    return False
