"""A SavedModel of a graph that JAX computes: `jax2tf` puts its compiled program into a TensorFlow operation."""

import warnings
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from scena.prediction.formats.signature import ConversionError, signature

PLATFORMS = ("cpu", "cuda")
"""What the SavedModel runs on."""


def write_jax_saved_model(target: Path, graph: keras.Model) -> None:
    """Writes one graph with named inputs and outputs, for any batch size and any size of variable axes.

    Raises:
        ConversionError: JAX can compile this graph for fixed shapes only, or not without JAX.
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
                call, polymorphic_shapes=[None, shapes], native_serialization_platforms=PLATFORMS, with_gradient=False
            )
            serve = tf.function(lambda **inputs: converted(module.weights_of_graph, inputs), autograph=False)
            concrete = serve.get_concrete_function(**specs)
            tf.saved_model.save(module, str(target), signatures={"serving_default": concrete})
    except Exception as error:  # jax2tf lets through whatever a layer or the compiler raises
        raise ConversionError(
            f"jax2tf cannot write this graph as a SavedModel: {_first_line(error)} The weights do not depend on the backend; "
            "write it with: KERAS_BACKEND=tensorflow scena export MODEL --format saved_model"
        ) from error


def _symbolic_shape(number: int, spec: tf.TensorSpec) -> str:
    """The shape in the words of jax2tf: one name for the batch of all inputs, and one for each variable axis."""
    inner = [
        f"size{number}_{axis}" if size is None else str(size) for axis, size in enumerate(spec.shape.as_list()[1:], 1)
    ]
    return f"({', '.join(['batch', *inner])})"


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {(lines or ['no reason given'])[0].rstrip('.')}."
