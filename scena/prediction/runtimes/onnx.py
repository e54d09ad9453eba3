"""Predicts with ONNX Runtime, on the CPU."""

from pathlib import Path

from scena.prediction.formats.onnx import open_session
from scena.prediction.runtimes.base import Arrays
from scena.prediction.runtimes.parallel import Call, ParallelRuntime


class OnnxRuntime(ParallelRuntime):
    """Runs `model.onnx`."""

    package = "onnxruntime"

    def load(self, path: Path, threads: int | None, calls: int) -> Call:
        session = open_session(path, threads)
        inputs = [value.name for value in session.get_inputs()]
        outputs = list(self.converted.outputs)

        def call(values: Arrays) -> Arrays:
            found = session.run(outputs, {name: values[name] for name in inputs})
            return dict(zip(outputs, found, strict=True))

        return call
