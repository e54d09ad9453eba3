"""A format to export to, and the runtime that predicts with it."""

import tempfile
import zipfile
from pathlib import Path

import tensorflow as tf

from scena import Runtime
from scena.prediction.formats.saved_model import SavedModel


class Zipped(SavedModel):
    def file_name(self, suffix):
        return f"model{suffix}.zip"

    def write(self, graph, path, inputs):
        with tempfile.TemporaryDirectory() as folder:
            super().write(graph, Path(folder), inputs)
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=self.params.level) as file:
                for part in Path(folder).rglob("*"):
                    file.write(part, part.relative_to(folder))

    def open(self, path):
        return ZippedModel(path).predict


class ZippedModel:
    def __init__(self, path):
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(path).extractall(folder)
            self.model = tf.saved_model.load(folder)
        self.signature = self.model.signatures["serving_default"]

    def predict(self, inputs):
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        return {name: value.numpy() for name, value in self.signature(**tensors).items()}


class ZippedRuntime(Runtime):
    def __init__(self, params, export):
        super().__init__(params, export)
        self.model = ZippedModel(export.directory / "model.zip")

    def inputs(self):
        return list(self.model.signature.structured_input_signature[1])

    def predict(self, inputs):
        return self.model.predict(inputs)
