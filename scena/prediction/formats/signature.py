"""A Keras graph as a TensorFlow function with named inputs, in the shapes and operations that converters understand."""

import contextlib
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from scena.errors import ConversionError as ConversionError
from scena.prediction.formats.base import Arrays as Arrays
from scena.prediction.formats.base import Run as Run


def signature(graph: keras.Model, batch: int | None = None, length: int | None = None) -> dict[str, tf.TensorSpec]:
    """Names, shapes and types of a graph's inputs.

    Args:
        graph: the model.
        batch: a fixed batch size, if the format needs one.
        length: what takes the place of variable axes, if the format needs fixed ones.
    """
    inputs = graph.input if isinstance(graph.input, dict) else {tensor.name: tensor for tensor in graph.inputs}
    specs = {}
    for name, tensor in inputs.items():
        inner = [length if size is None else size for size in tensor.shape[1:]]
        specs[name] = tf.TensorSpec([batch, *inner], tensor.dtype, name=name)
    return specs


def variable_inputs(graph: keras.Model) -> list[str]:
    """The inputs with a variable axis beside the batch."""
    return [name for name, spec in signature(graph).items() if None in spec.shape.as_list()[1:]]


def by_name(graph: keras.Model) -> Callable[..., Any]:
    """The graph as a function of keyword arguments."""

    def serve(**inputs: Any) -> Any:
        return graph(inputs, training=False)

    return serve


@contextlib.contextmanager
def convertible() -> Iterator[None]:
    """Inside, `argmax` is traced in operations that ONNX and LiteRT have.

    Keras 3.15 looks at the sign bit of zeros in `argmax` of floats, with bit operations that neither format knows. Comparing with
    zero instead differs for -0.0 only. There is no public switch for it, hence the reach into Keras; a test notices when it is not
    needed any more.
    """
    from keras.src.backend.tensorflow import numpy as keras_numpy

    original = getattr(keras_numpy, "signbit", None)
    if original is None:
        yield
        return
    keras_numpy.signbit = lambda x: tf.less(tf.convert_to_tensor(x), 0)
    try:
        yield
    finally:
        keras_numpy.signbit = original


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hides what converters print on their way; their exceptions say what matters."""
    loggers = [logging.getLogger(name) for name in ("tf2onnx", "tensorflow", "absl")]
    levels = [logger.level for logger in loggers]
    real = os.dup(2)
    with tempfile.TemporaryFile() as noise, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.dup2(noise.fileno(), 2)
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            yield
        finally:
            os.dup2(real, 2)
            os.close(real)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
