"""Running a model op by op without waiting for what compiling would save: for a single run of a few samples."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from scena.backends.base import Arrays

OFTEN = 8
"""A model that was run this often is run once more and compiled: that takes as long as some ten runs."""
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
            functions[id(layer)] = _traced(partial(original, layer), sequences, *args, **kwargs)
        return functions[id(layer)](sequences, *args, **kwargs)

    rnn.call = call
    try:
        with unoptimized():
            yield
    finally:
        rnn.call = original


def _traced(function: Callable[..., Any], sequences: Any, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The function traced once, for batches of any size and length where it allows that."""
    made = tf.function(function, autograph=False)

    def spec(value: Any) -> Any:
        is_mask = tf.is_tensor(value) and value.dtype == tf.bool
        return (
            tf.TensorSpec([None, *([None] if is_mask else value.shape[1:])], value.dtype)
            if tf.is_tensor(value)
            else value
        )

    states_and_mask = tf.nest.map_structure(spec, (args, kwargs))
    with suppress(Exception):  # a cell of the user may need to know the sizes
        lengths = tf.TensorSpec([None, None, *sequences.shape[2:]], sequences.dtype)
        made.get_concrete_function(lengths, *states_and_mask[0], **states_and_mask[1])
    return made


def compiled_when_it_pays(run: Callable[[Arrays], Arrays], graph: keras.Model) -> Callable[[Arrays], Arrays]:
    """A function that runs a graph op by op, and after a while compiled, if that gives the same bits.

    Args:
        run: runs it op by op, and leaves its variables as they are.
        graph: the graph. What its layers keep outside of variables must not change.
    """
    runs = 0
    compiled: Callable[[Arrays], Arrays] | None = None

    @tf.function(autograph=False)
    def call(tensors: dict[str, Any]) -> Any:
        with keras.StatelessScope():
            return graph(tensors, training=False)

    def run_compiled(inputs: Arrays) -> Arrays:
        with unoptimized():
            outputs = call({name: tf.convert_to_tensor(value) for name, value in inputs.items()})
        return {name: np.asarray(value) for name, value in outputs.items()}

    def choose(inputs: Arrays) -> Arrays:
        nonlocal runs, compiled
        if compiled is not None:
            return compiled(inputs)
        outputs, runs = run(inputs), runs + 1
        if runs == OFTEN and _same(run_compiled, inputs, outputs):
            compiled = run_compiled
        return outputs

    return choose


def _same(run: Callable[[Arrays], Arrays], inputs: Arrays, wanted: Arrays) -> bool:
    try:
        outputs = run(inputs)
    except Exception:  # a user's graph may work op by op only
        return False
    return all(np.array_equal(value, outputs[name]) for name, value in wanted.items())


@contextmanager
def unoptimized() -> Iterator[None]:
    """TensorFlow does not optimize functions that are first run inside: for one run that takes longer than the run."""
    before = tf.config.optimizer.get_experimental_options().get(_OPTION, False)
    tf.config.optimizer.set_experimental_options({_OPTION: True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({_OPTION: before})
