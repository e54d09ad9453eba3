"""Predicts with ONNX Runtime, on the CPU."""

from pathlib import Path

from scena.prediction.formats.onnx import open_session
from scena.prediction.runtimes.base import Arrays
from scena.prediction.runtimes.converted import ConvertedRuntime


class OnnxRuntime(ConvertedRuntime):
    """Runs `model.onnx`."""

    package = "onnxruntime"

    def open(self, path: Path, threads: int | None) -> None:
        session = open_session(path, threads)
        self._run = session.run
        self._inputs = [value.name for value in session.get_inputs()]
        self._outputs = list(self.converted.outputs)

    def predict(self, inputs: Arrays) -> Arrays:
        values = self._run(self._outputs, {name: inputs[name] for name in self._inputs})
        return dict(zip(self._outputs, values, strict=True))
