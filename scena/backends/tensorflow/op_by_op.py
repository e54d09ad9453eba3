"""Running a model op by op without waiting for what compiling would save: for a single run of a few samples."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import keras
import tensorflow as tf

SHORT = 24
"""Time steps that Python runs faster than it traces one."""
_OPTION = "disable_meta_optimizer"


@contextmanager
def fast_loops(traced: dict[int, Callable[..., Any]] | None = None) -> Iterator[None]:
    """Inside, a recurrent layer that is called op by op is traced and run as one operation.

    Otherwise Python would run every operation of its cell at each time step: a second and more for a line of text.

    Args:
        traced: the layers that were traced before, by id, and their functions; those of this block are added.
    """
    rnn: Any = keras.layers.RNN
    original = rnn.call  # LSTM, GRU and layers of users end there
    functions = {} if traced is None else traced

    def call(layer: Any, sequences: Any, *args: Any, **kwargs: Any) -> Any:
        if not tf.executing_eagerly() or layer.stateful or sequences.shape[1] <= SHORT:
            return original(layer, sequences, *args, **kwargs)
        if id(layer) not in functions:
            functions[id(layer)] = tf.function(partial(original, layer), autograph=False)
        return functions[id(layer)](sequences, *args, **kwargs)

    rnn.call = call
    try:
        with unoptimized():
            yield
    finally:
        rnn.call = original


@contextmanager
def unoptimized() -> Iterator[None]:
    """TensorFlow does not optimize functions that are first run inside: for one run that takes longer than the run."""
    before = tf.config.optimizer.get_experimental_options().get(_OPTION, False)
    tf.config.optimizer.set_experimental_options({_OPTION: True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({_OPTION: before})
