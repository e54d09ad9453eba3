"""TensorFlow's SavedModel, one for each graph, with named inputs and outputs."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from scena.prediction.export import write_graph_saved_model
from scena.prediction.formats.base import Arrays, ExportFormat, Run


class SavedModel(ExportFormat):
    """Writes what answers without Scena and without the scenario's code."""

    def file_name(self, suffix: str) -> str:
        return f"saved_model{suffix}"

    def write(self, graph: keras.Model, path: Path, inputs: Arrays) -> None:
        write_graph_saved_model(path, graph)

    def open(self, path: Path) -> Run:
        loaded = tf.saved_model.load(str(path))

        def run(inputs: Arrays) -> Arrays:
            tensors = {name: tf.convert_to_tensor(value) for name, value in inputs.items()}
            outputs = loaded.signatures["serving_default"](**tensors)
            return {name: np.asarray(value) for name, value in outputs.items()}

        return run
