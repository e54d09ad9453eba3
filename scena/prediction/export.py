"""The models in an export: Keras files and SavedModels, one for each graph."""

from pathlib import Path
from typing import TYPE_CHECKING

import keras

from scena.devices.backend import on_tensorflow

if TYPE_CHECKING:
    from scena.model.built import BuiltModel


def write_model(directory: Path, built: "BuiltModel") -> None:
    """Writes `model.keras`, and a file for each additional graph of the model."""
    remember_skipped_attributes()
    for name, graph in built.graphs.items():
        graph.save(directory / ("model.keras" if name == "default" else f"model_{name}.keras"))


def remember_skipped_attributes() -> None:
    """Halves the time of `Model.save`, which a training pays for each time its model gets better.

    Keras asks for each layer which attributes it must not look into, and creates an empty layer to answer. It stores the answer
    under another name than the one it reads, so it never finds it again.
    """
    from keras.src.backend.common import global_state
    from keras.src.saving import saving_lib

    for kind in ("Layer", "Functional", "Sequential"):
        read_name = f"saving_attr_skiplist_{kind}"
        if global_state.get_global_attribute(read_name) is None:
            global_state.set_global_attribute(read_name, saving_lib.get_attr_skipset(kind))


def write_saved_model(directory: Path, built: "BuiltModel") -> None:
    """Writes `saved_model/` with named inputs and outputs, one more for each additional graph."""
    for name, graph in built.graphs.items():
        write_graph_saved_model(directory / ("saved_model" if name == "default" else f"saved_model_{name}"), graph)


def write_graph_saved_model(target: Path, graph: keras.Model) -> None:
    """Writes one graph as a SavedModel that answers without Scena and without the scenario's code.

    Raises:
        ConversionError: the backend is JAX, and this graph cannot leave it.
    """
    if not on_tensorflow():
        from scena.prediction.convert.jax_saved_model import write_jax_saved_model

        write_jax_saved_model(target, graph)
        return
    import tensorflow as tf

    from scena.prediction.convert.signature import by_name, signature

    module = tf.Module()
    module.variables_of_graph = [variable.value for variable in graph.variables]
    # Keras' own ExportArchive names a single input "inputs", whatever it is called
    serve = tf.function(by_name(graph), autograph=False).get_concrete_function(**signature(graph))
    tf.saved_model.save(module, str(target), signatures={"serving_default": serve})
