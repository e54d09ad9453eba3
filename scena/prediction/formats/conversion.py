"""Converting the graphs of a model to another format: write aside, compare with the original on real samples, then put in place."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import keras
import numpy as np

from scena.backends.selection import load_keras, only_with
from scena.data.spec import ArraySpec
from scena.errors import ConversionError
from scena.model.printing import prints_itself
from scena.params.declare import short_name
from scena.prediction.converted import ConvertedModel, Described, note_converted, source_of
from scena.prediction.formats.base import Arrays, ExportFormat, Run, difference
from scena.prediction.params import ExportFormatParams
from scena.prediction.runtimes.base import joined
from scena.prediction.runtimes.call_size import MeasuredExport, fastest_call_size, runtime_of
from scena.storage.checksums import add_checksums, tree_checksums
from scena.storage.durable import put_in_place, sync_tree
from scena.storage.run_layout import EXPORT_FILE

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
    """Converts the graphs of a model.

    Args:
        built: the model, with the weights of the export.
        directory: where to write. If it is the export itself, what was measured is noted there, and runtimes may use the result.
        inputs: a batch of real samples for the check.
        tolerance: how far outputs may be apart; default: what the format allows.
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
        return [self._convert(form, name, graph, tolerance) for name, graph in self.built.graphs.items()]

    def _convert(self, form: ExportFormat, graph_name: str, graph: keras.Model, tolerance: float) -> Conversion:
        name = form.file_name("" if graph_name == "default" else f"_{graph_name}")
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
            files = tree_checksums(path, Path(folder))
            add_checksums(self.directory, files, instead_of=[name])
            if path.is_dir():
                sync_tree(path)
                put_in_place(path, target)
            else:
                path.replace(target)
        done = Conversion(target, differences, tolerance, len(next(iter(inputs.values()))))
        if (self.directory / EXPORT_FILE).is_file():
            record = self._record(form, graph_name, graph, done, files)
            note_converted(self.directory, name, record)
            if graph_name == "default" and not form.one_by_one and (runtime := runtime_of(form.params)):
                record.call_size = fastest_call_size(runtime.create(MeasuredExport(self.directory)), inputs)
                note_converted(self.directory, name, record)
        return done

    def _record(
        self, form: ExportFormat, graph_name: str, graph: keras.Model, done: Conversion, files: dict[str, str]
    ) -> ConvertedModel:
        inputs = graph.input if isinstance(graph.input, dict) else {tensor.name: tensor for tensor in graph.inputs}
        padding = {name: np.asarray(value) for name, value in self.built.data.padding_values().items()}
        return ConvertedModel(
            format=short_name(type(form.params)),
            graph=graph_name,
            files=files,
            source=source_of(self.directory, graph_name),
            inputs={name: Described.of(ArraySpec.of(tensor)) for name, tensor in inputs.items()},
            outputs={name: Described.of(ArraySpec.of(tensor)) for name, tensor in graph.output.items()},
            differences=done.differences,
            tolerance=done.tolerance,
            samples=done.samples,
            padding={
                name: value.item() for name, value in padding.items() if name in inputs and value.dtype.kind in "iuf"
            },
            one_by_one=form.one_by_one,
            model_prints=prints_itself(self.built.model),
            versions=form.versions(),
        )


def compare(graph: keras.Model, converted: Run, inputs: Arrays, *, one_by_one: bool = False) -> dict[str, float]:
    """How far each output of a converted model is from the original's on a batch of real inputs, which it may take one by one only."""
    size = len(next(iter(inputs.values())))
    chunks = (
        [{name: value[i : i + 1] for name, value in inputs.items()} for i in range(size)] if one_by_one else [inputs]
    )
    wanted = joined([_original(graph, chunk) for chunk in chunks])
    received = joined([converted(chunk) for chunk in chunks])
    if set(wanted) != set(received):
        raise ConversionError(
            f"The converted model has the outputs {sorted(received)}; the original has {sorted(wanted)}."
        )
    return {name: difference(wanted[name], received[name]) for name in wanted}


def _original(graph: keras.Model, inputs: Arrays) -> Arrays:
    outputs = graph({name: keras.ops.convert_to_tensor(value) for name, value in inputs.items()}, training=False)
    return {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}
