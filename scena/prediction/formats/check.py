"""Does a converted model give the answers of the original? Compared on real samples, output by output."""

import keras
import numpy as np

from scena.errors import ConversionError
from scena.prediction.formats.base import Arrays, Run
from scena.prediction.formats.difference import Difference, difference


def original(graph: keras.Model) -> Run:
    """The model that was converted."""

    def run(inputs: Arrays) -> Arrays:
        outputs = graph({name: keras.ops.convert_to_tensor(value) for name, value in inputs.items()}, training=False)
        return {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}

    return run


def compare(expected: Run, converted: Run, inputs: Arrays, *, one_by_one: bool = False) -> list[Difference]:
    """Runs both models on the same inputs.

    Args:
        expected: the original.
        converted: the converted model.
        inputs: a batch of real inputs.
        one_by_one: the converted model takes one sample at a time.
    """
    size = len(next(iter(inputs.values())))
    pieces = (
        [{name: value[i : i + 1] for name, value in inputs.items()} for i in range(size)] if one_by_one else [inputs]
    )
    wanted, received = _joined([expected(piece) for piece in pieces]), _joined([converted(piece) for piece in pieces])
    if set(wanted) != set(received):
        raise ConversionError(
            f"The converted model has the outputs {sorted(received)}; the original has {sorted(wanted)}."
        )
    return [Difference(name, difference(wanted[name], received[name])) for name in wanted]


def fixed_length(inputs: Arrays, shapes: dict[str, list[int | None]], padding: dict[str, object]) -> Arrays:
    """The inputs cut or padded to the shapes that a converted model takes (without their batch)."""
    fixed = {}
    for name, value in inputs.items():
        shape = [
            len(value),
            *(want if want is not None else have for want, have in zip(shapes[name], value.shape[1:], strict=True)),
        ]
        region = tuple(slice(min(a, b)) for a, b in zip(shape, value.shape, strict=True))
        fixed[name] = np.full(shape, padding.get(name, 0), value.dtype)
        fixed[name][region] = value[region]
    return fixed


def _joined(outputs: list[Arrays]) -> Arrays:
    return {name: np.concatenate([np.atleast_1d(output[name]) for output in outputs]) for name in outputs[0]}
