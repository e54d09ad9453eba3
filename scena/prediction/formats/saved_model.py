"""TensorFlow's SavedModel, one for each graph, with named inputs and outputs: it answers without Scena and the scenario's code."""

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from scena.backends.base import backend
from scena.errors import ConversionError, first_line
from scena.model.state.randomness import global_seed_variables
from scena.prediction.formats.base import Arrays, ExportFormat, Run

ELSEWHERE = "The weights do not depend on the backend; write it with: KERAS_BACKEND=tensorflow scena export MODEL --format saved_model"
JAX_PLATFORMS = ("cpu", "cuda")
"""What the SavedModel of a graph in JAX runs on."""


class SavedModel(ExportFormat):
    """Writes a folder for each graph."""

    package = "tensorflow"

    def file_name(self, suffix: str) -> str:
        return f"saved_model{suffix}"

    def write(self, graph: keras.Model, path: Path, inputs: Arrays) -> None:
        write_saved_model(path, graph)

    def open(self, path: Path) -> Run:
        loaded = tf.saved_model.load(str(path))

        def run(inputs: Arrays) -> Arrays:
            tensors = {name: tf.convert_to_tensor(value) for name, value in inputs.items()}
            outputs = loaded.signatures["serving_default"](**tensors)
            return {name: np.asarray(value) for name, value in outputs.items()}

        return run


def write_saved_model(target: Path, graph: keras.Model) -> None:
    """Writes a graph with the writer of the present backend.

    Raises:
        ConversionError: the backend has none, or cannot write this graph.
    """
    module, _, function = backend().saved_model_writer.partition(":")
    if not module:
        raise ConversionError(f"The backend {backend().name} cannot write a SavedModel. {ELSEWHERE}")
    getattr(importlib.import_module(module), function)(target, graph)


def write_tensorflow_saved_model(target: Path, graph: keras.Model) -> None:
    """Writes a graph that TensorFlow computes."""
    module = tf.Module()
    module.variables_of_graph = [variable.value for variable in [*graph.variables, *global_seed_variables()]]
    module.tables_of_graph = [
        value
        for layer in graph._flatten_layers()
        for value in vars(layer).values()
        if isinstance(value, tf.saved_model.experimental.TrackableResource)
    ]
    # Keras' own ExportArchive names a single input "inputs", whatever it is called
    serve = tf.function(by_name(graph), autograph=False).get_concrete_function(**signature(graph))
    try:
        tf.saved_model.save(module, str(target), signatures={"serving_default": serve})
    except AssertionError as error:  # TensorFlow does not know where a table or a variable comes from
        raise ConversionError(f"A layer holds something that TensorFlow cannot store: {first_line(error)}") from error


def write_jax_saved_model(target: Path, graph: keras.Model) -> None:
    """Writes a graph that JAX computes, for any batch size and any size of variable axes: `jax2tf` puts its compiled program into a
    TensorFlow operation.
    """
    from jax.experimental import jax2tf

    def call(weights: Any, inputs: Any) -> Any:
        outputs, _ = graph.stateless_call(*weights, inputs, training=False)
        return outputs

    module = tf.Module()
    groups = (graph.trainable_variables, graph.non_trainable_variables)
    module.weights_of_graph = [
        [tf.Variable(keras.ops.convert_to_numpy(variable.value)) for variable in group] for group in groups
    ]
    specs = signature(graph)
    shapes = {name: _symbolic_shape(number, spec) for number, (name, spec) in enumerate(specs.items())}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # jax2tf tells its developers about formats to come
            converted = jax2tf.convert(
                call,
                polymorphic_shapes=[None, shapes],
                native_serialization_platforms=JAX_PLATFORMS,
                with_gradient=False,
            )
            serve = tf.function(lambda **inputs: converted(module.weights_of_graph, inputs), autograph=False)
            concrete = serve.get_concrete_function(**specs)
            tf.saved_model.save(module, str(target), signatures={"serving_default": concrete})
    except Exception as error:  # jax2tf lets through whatever a layer or the compiler raises
        reason = f"{type(error).__name__}: {first_line(error).rstrip('.')}."
        raise ConversionError(f"jax2tf cannot write this graph as a SavedModel: {reason} {ELSEWHERE}") from error


def _symbolic_shape(number: int, spec: tf.TensorSpec) -> str:
    """A shape as jax2tf spells it: one name for the batch of all inputs, and one for each variable axis."""
    inner = [
        f"size{number}_{axis}" if size is None else str(size) for axis, size in enumerate(spec.shape.as_list()[1:], 1)
    ]
    return f"({', '.join(['batch', *inner])})"


def signature(graph: keras.Model, batch: int | None = None, length: int | None = None) -> dict[str, tf.TensorSpec]:
    """Names, shapes and types of a graph's inputs; some formats need a fixed batch size, or a fixed length of variable axes."""
    inputs = graph.input if isinstance(graph.input, dict) else {tensor.name: tensor for tensor in graph.inputs}
    specs = {}
    for name, tensor in inputs.items():
        inner = [length if size is None else size for size in tensor.shape[1:]]
        specs[name] = tf.TensorSpec([batch, *inner], tensor.dtype, name=name)
    return specs


def by_name(graph: keras.Model) -> Callable[..., Any]:
    """The graph as a function of keyword arguments."""
    return lambda **inputs: graph(inputs, training=False)
