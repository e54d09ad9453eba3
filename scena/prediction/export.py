"""The models in an export: Keras files and SavedModels, one for each graph."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import keras

from scena.backends.base import backend
from scena.errors import first_line
from scena.model.state.archive import write_layer_file
from scena.model.state.variables import global_seed_variables
from scena.storage.run_layout import model_file, saved_model

if TYPE_CHECKING:
    from scena.model.built import BuiltModel


def write_model(directory: Path, built: "BuiltModel") -> None:
    """Writes `model.keras`, a file for each additional graph of the model, and what layers keep beside their weights."""
    remember_skipped_attributes()
    built.build_training_graph()  # its layers are in every file: reading one expects them
    for name, graph in built.graphs.items():
        graph.save(directory / model_file(name))
    write_layer_file(directory, built.layers().read())


def remember_skipped_attributes() -> None:
    """Halves the time of `Model.save`, which a training calls each time its model improves.

    For each layer Keras computes which attributes to skip by creating an empty layer. It stores the result under another name than
    the one it reads, so it never finds it again.
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
        write_graph_saved_model(directory / saved_model(name), graph)


def write_graph_saved_model(target: Path, graph: keras.Model) -> None:
    """Writes one graph as a SavedModel that runs without Scena and the scenario's code.

    Raises:
        ConversionError: the backend cannot write it, or this graph cannot leave it.
    """
    module, _, function = backend().saved_model_writer.partition(":")
    if not module:
        from scena.errors import ConversionError

        raise ConversionError(
            f"The backend {backend().name} cannot write a SavedModel. The weights do not depend on the backend; write it with: "
            "KERAS_BACKEND=tensorflow scena export DIR --format saved_model"
        )
    getattr(importlib.import_module(module), function)(target, graph)


def write_tensorflow_saved_model(target: Path, graph: keras.Model) -> None:
    """Writes a graph that TensorFlow computes."""
    import tensorflow as tf

    from scena.prediction.formats.signature import ConversionError, by_name, signature

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
