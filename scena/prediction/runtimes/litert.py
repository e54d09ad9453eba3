"""Predicts with LiteRT, on the CPU."""

import threading
from pathlib import Path

import numpy as np

from scena.backends.quiet import silenced_unless_failing
from scena.errors import DataError
from scena.prediction.formats.litert import open_interpreter
from scena.prediction.runtimes.base import Arrays
from scena.prediction.runtimes.converted import ConvertedRuntime


class LiteRTRuntime(ConvertedRuntime):
    """Runs `model.tflite`. Variable axes that were fixed when it was converted are padded; longer samples are refused."""

    package = "ai_edge_litert"

    def open(self, path: Path, threads: int | None) -> None:
        with silenced_unless_failing():  # it reports its delegate
            self._runner = open_interpreter(path, threads).get_signature_runner("serving_default")
        details = self._runner.get_input_details()
        self._inputs = {name: tuple(detail["shape_signature"][1:]) for name, detail in details.items()}
        self._lock = threading.Lock()  # an interpreter serves one call at a time

    def predict(self, inputs: Arrays) -> Arrays:
        padding = self.converted.padding
        fitting = {
            name: _fitting(name, inputs[name], sizes, padding.get(name, 0)) for name, sizes in self._inputs.items()
        }
        if not self.converted.one_by_one:
            return self._call(fitting)
        rows = [
            self._call({name: values[row : row + 1] for name, values in fitting.items()})
            for row in range(len(next(iter(fitting.values()))))
        ]
        return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}

    def _call(self, inputs: Arrays) -> Arrays:
        with self._lock:
            outputs = self._runner(**inputs)
        return {name: outputs[name] for name in self.converted.outputs}


def _fitting(name: str, value: np.ndarray, sizes: tuple[int, ...], padding: float) -> np.ndarray:
    """A batch with the sizes that the file takes; -1 is any."""
    own = value.shape[1:]
    if all(size in (-1, there) for size, there in zip(sizes, own, strict=True)):
        return value
    missing = [0 if size == -1 else size - there for size, there in zip(sizes, own, strict=True)]
    if min(missing) < 0:
        raise DataError(
            f"The input {name!r} has the shape {own}, and the converted model takes at most {sizes}. Convert it with a larger --length, "
            "or choose another runtime."
        )
    return np.pad(value, [(0, 0), *((0, count) for count in missing)], constant_values=padding)
