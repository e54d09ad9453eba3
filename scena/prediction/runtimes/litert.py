"""Predicts with LiteRT, on the CPU."""

from pathlib import Path
from typing import Any

import numpy as np

from scena.backends.quiet import silenced_unless_failing
from scena.errors import DataError
from scena.prediction.formats.litert import open_interpreter
from scena.prediction.runtimes.base import Arrays
from scena.prediction.runtimes.parallel import Call, ParallelRuntime, exclusive


class LiteRTRuntime(ParallelRuntime):
    """Runs `model.tflite`. Variable axes that were fixed when it was converted are padded; longer samples are refused."""

    package = "ai_edge_litert"

    def load(self, path: Path, threads: int | None, calls: int) -> Call:
        def create() -> Call:
            with silenced_unless_failing():  # it reports its delegate
                runner = open_interpreter(path, threads).get_signature_runner("serving_default")
            details = runner.get_input_details()
            sizes = {name: tuple(detail["shape_signature"][1:]) for name, detail in details.items()}
            return lambda inputs: self._run(runner, sizes, inputs)

        create()  # finds out whether it can be opened
        return exclusive(create)

    def _run(self, runner: Any, sizes: dict[str, tuple[int, ...]], inputs: Arrays) -> Arrays:
        padding, outputs = self.converted.padding, self.converted.outputs
        fitting = {name: _fitting(name, inputs[name], own, padding.get(name, 0)) for name, own in sizes.items()}
        if not self.converted.one_by_one:
            found = runner(**fitting)
            return {name: found[name] for name in outputs}
        rows = [
            runner(**{name: values[row : row + 1] for name, values in fitting.items()})
            for row in range(len(next(iter(fitting.values()))))
        ]
        return {name: np.concatenate([row[name] for row in rows]) for name in outputs}


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
