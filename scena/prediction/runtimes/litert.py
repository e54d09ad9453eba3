"""Predicts with LiteRT, on the CPU."""

from pathlib import Path

import numpy as np

from scena.backends.quiet import silenced_unless_failing
from scena.errors import DataError
from scena.prediction.formats.litert import LiteRTModel
from scena.prediction.runtimes.base import Arrays, joined
from scena.prediction.runtimes.parallel import Call, ParallelRuntime, exclusive


class LiteRTRuntime(ParallelRuntime):
    """Runs `model.tflite`. Variable axes that were fixed when it was converted are padded; longer samples are refused."""

    package = "ai_edge_litert"
    usual_threads = 1
    copies_weights = True

    def load(self, path: Path, threads: int | None, calls: int) -> Call:
        def create() -> Call:
            model = LiteRTModel(path, threads)
            return lambda inputs: self._run(model, inputs)

        with silenced_unless_failing():  # the first one reports its delegate
            first = create()
        return exclusive(create, calls, first)

    def _run(self, model: LiteRTModel, inputs: Arrays) -> Arrays:
        padding, outputs = self.converted.padding, self.converted.outputs
        fitting = {name: _fitting(name, inputs[name], own, padding.get(name, 0)) for name, own in model.sizes.items()}
        if not self.converted.one_by_one:
            found = model(fitting)
            return {name: found[name] for name in outputs}
        rows = [
            model({name: values[row : row + 1] for name, values in fitting.items()})
            for row in range(len(next(iter(fitting.values()))))
        ]
        return {name: values for name, values in joined(rows).items() if name in outputs}


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
