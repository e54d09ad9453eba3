"""Writing an export: a directory with everything a prediction needs, which appears as a whole and can be moved."""

from pathlib import Path
from typing import TYPE_CHECKING

import keras

if TYPE_CHECKING:
    from collections.abc import Callable

    import tensorflow as tf

    from scena.model.built import BuiltModel


def write_model(directory: Path, built: "BuiltModel") -> None:
    """Writes `model.keras`, and a file for each additional graph of the model."""
    for name, graph in built.graphs.items():
        graph.save(directory / ("model.keras" if name == "default" else f"model_{name}.keras"))


def write_saved_model(directory: Path, built: "BuiltModel") -> None:
    """Writes `saved_model/` with named inputs and outputs, one more for each additional graph."""
    import tensorflow as tf

    for name, graph in built.graphs.items():
        module = tf.Module()
        module.variables_of_graph = [variable.value for variable in graph.variables]
        serve = tf.function(_by_name(graph), autograph=False).get_concrete_function(**_signature(graph))
        target = directory / ("saved_model" if name == "default" else f"saved_model_{name}")
        tf.saved_model.save(module, str(target), signatures={"serving_default": serve})


def _by_name(graph: keras.Model) -> "Callable[..., object]":
    # Keras' own ExportArchive names a single input "inputs", whatever it is called
    def serve(**inputs: object) -> object:
        return graph(inputs, training=False)

    return serve


def _signature(graph: keras.Model) -> "dict[str, tf.TensorSpec]":
    import tensorflow as tf

    inputs = graph.input if isinstance(graph.input, dict) else {tensor.name: tensor for tensor in graph.inputs}
    return {name: tf.TensorSpec(tensor.shape, tensor.dtype, name=name) for name, tensor in inputs.items()}
