"""Adding other formats to an export: convert, check on real samples, and only then put the file in its place."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import keras

from scena.backends.selection import load_keras, only_with
from scena.errors import ConversionError
from scena.params.declare import short_name
from scena.prediction.formats.base import Arrays, ExportFormat
from scena.prediction.formats.check import compare, original
from scena.prediction.formats.difference import Difference
from scena.prediction.formats.params import ExportFormatParams
from scena.storage.checksums import add_checksums, tree_checksums
from scena.storage.durable import put_in_place, sync_tree

if TYPE_CHECKING:
    from scena.model.built import BuiltModel


class Conversion(NamedTuple):
    """A converted graph that passed its check."""

    path: Path
    differences: list[Difference]
    tolerance: float
    samples: int


class Converter:
    """Converts the graphs of one model.

    Args:
        built: the model with its weights.
        directory: where the files go.
        inputs: a batch of real inputs that the check runs on.
        tolerance: how far outputs may be apart; default: as the format says.
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
            self._checked(form, graph, "" if name == "default" else f"_{name}", tolerance)
            for name, graph in self.built.graphs.items()
        ]

    def _checked(self, form: ExportFormat, graph: keras.Model, suffix: str, tolerance: float) -> Conversion:
        """Writes aside, compares, and moves into place what is right."""
        name = form.file_name(suffix)
        own = {key: self.inputs[key] for key in input_names(graph)}
        inputs = form.inputs(graph, own, self.built.data.padding_values())
        self.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.directory, prefix=".converting-") as folder:
            path = Path(folder) / name
            form.write(graph, path, inputs)
            differences = compare(original(graph), form.open(path), inputs, one_by_one=form.one_by_one)
            worst = max(differences, key=lambda difference: difference.value)
            if not worst.value <= tolerance:
                raise ConversionError(
                    f"{name} gives other answers than the model: the output {worst.output!r} differs by {worst.value:.3g}, more than "
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


def input_names(graph: keras.Model) -> list[str]:
    """The names of a graph's inputs."""
    return list(graph.input) if isinstance(graph.input, dict) else [tensor.name for tensor in graph.inputs]
