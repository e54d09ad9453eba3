"""Converting the graphs of a model to another format: write aside, compare with the original on real samples, then put in place."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import keras
import numpy as np

from scena.backends.selection import load_keras, only_with
from scena.errors import ConversionError
from scena.params.declare import short_name
from scena.prediction.formats.base import Arrays, ExportFormat, Run, difference
from scena.prediction.params import ExportFormatParams
from scena.storage.checksums import add_checksums, tree_checksums
from scena.storage.durable import put_in_place, sync_tree

if TYPE_CHECKING:
    from scena.model.built import BuiltModel


class Conversion(NamedTuple):
    """A converted graph that passed its check."""

    path: Path
    differences: dict[str, float]
    """By output; see `difference`."""
    tolerance: float
    samples: int


class Converter:
    """Converts the graphs of a model. `inputs` is a batch of real samples for the check; `tolerance` is what the format says,
    unless it is given.
    """

    def __init__(self, built: "BuiltModel", directory: Path, inputs: Arrays, *, tolerance: float | None = None) -> None:
        self.built = built
        self.directory = directory
        self.inputs = inputs
        self.tolerance = tolerance

    def convert(self, params: ExportFormatParams) -> list[Conversion]:
        """Converts every graph to one format.

        Raises:
            ConversionError: a graph cannot be converted, or the converted one gives other answers; nothing is written then.
        """
        if params.backends and load_keras() not in params.backends:
            raise only_with(params.backends, f"--format {short_name(type(params))}")
        form: ExportFormat = params.create()
        tolerance = params.tolerance() if self.tolerance is None else self.tolerance
        return [
            self._convert(form, graph, "" if name == "default" else f"_{name}", tolerance)
            for name, graph in self.built.graphs.items()
        ]

    def _convert(self, form: ExportFormat, graph: keras.Model, suffix: str, tolerance: float) -> Conversion:
        name = form.file_name(suffix)
        keys = graph.input if isinstance(graph.input, dict) else [tensor.name for tensor in graph.inputs]
        inputs = form.inputs(graph, {key: self.inputs[key] for key in keys}, self.built.data.padding_values())
        self.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.directory, prefix=".converting-") as folder:
            path = Path(folder) / name
            form.write(graph, path, inputs)
            differences = compare(graph, form.open(path), inputs, one_by_one=form.one_by_one)
            worst = max(differences, key=lambda output: differences[output])
            if not differences[worst] <= tolerance:
                raise ConversionError(
                    f"{name} gives other answers than the model: the output {worst!r} differs by {differences[worst]:.3g}, more than "
                    f"the tolerance of {tolerance:g}. It was not kept. (--tolerance allows more.)"
                )
            target = self.directory / name
            add_checksums(self.directory, tree_checksums(path, Path(folder)), instead_of=[name])
            if path.is_dir():
                sync_tree(path)
                put_in_place(path, target)
            else:
                path.replace(target)
        return Conversion(target, differences, tolerance, len(next(iter(inputs.values()))))


def compare(graph: keras.Model, converted: Run, inputs: Arrays, *, one_by_one: bool = False) -> dict[str, float]:
    """How far each output of a converted model is from the original's on a batch of real inputs, which it may take one by one only."""
    size = len(next(iter(inputs.values())))
    chunks = (
        [{name: value[i : i + 1] for name, value in inputs.items()} for i in range(size)] if one_by_one else [inputs]
    )
    wanted = _joined([_original(graph, chunk) for chunk in chunks])
    received = _joined([converted(chunk) for chunk in chunks])
    if set(wanted) != set(received):
        raise ConversionError(
            f"The converted model has the outputs {sorted(received)}; the original has {sorted(wanted)}."
        )
    return {name: difference(wanted[name], received[name]) for name in wanted}


def _original(graph: keras.Model, inputs: Arrays) -> Arrays:
    outputs = graph({name: keras.ops.convert_to_tensor(value) for name, value in inputs.items()}, training=False)
    return {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}


def _joined(outputs: list[Arrays]) -> Arrays:
    return {name: np.concatenate([np.atleast_1d(output[name]) for output in outputs]) for name in outputs[0]}
