"""Adding other formats to an export: convert, check on real samples, and only then put the file in its place."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import keras
import numpy as np

from scena.backends.selection import on_tensorflow, tensorflow_only
from scena.prediction.export import write_graph_saved_model
from scena.prediction.formats import litert as litert_format
from scena.prediction.formats import onnx as onnx_format
from scena.prediction.formats import tensorrt as tensorrt_format
from scena.prediction.formats.check import TOLERANCES, compare, fixed_length, original
from scena.prediction.formats.difference import Difference
from scena.prediction.formats.litert import Quantize
from scena.prediction.formats.signature import Arrays, ConversionError, Run, signature, variable_inputs
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
        quantize: how LiteRT files are made smaller.
        length: what takes the place of variable axes, for LiteRT.
        tolerance: how far outputs may be apart; default: by the way of quantising.
    """

    def __init__(
        self,
        built: "BuiltModel",
        directory: Path,
        inputs: Arrays,
        *,
        quantize: Quantize | None = None,
        length: int | None = None,
        tolerance: float | None = None,
    ) -> None:
        self.built = built
        self.directory = directory
        self.inputs = inputs
        self.quantize = quantize
        self.length = length
        self.tolerance = tolerance

    def convert(self, form: str) -> list[Conversion]:
        """Converts every graph to one format: "saved_model", "onnx", "litert" or "tensorrt".

        Raises:
            ConversionError: a graph cannot be converted, or the converted one gives other answers; nothing is written then.
        """
        ways: dict[str, Callable[[keras.Model, str], Conversion]] = {
            "saved_model": self._saved_model,
            "onnx": self._onnx,
            "litert": self._litert,
            "tensorrt": self._tensorrt,
        }
        if form != "saved_model" and not on_tensorflow():
            raise tensorflow_only(f"--format {form}")
        return [ways[form](graph, "" if name == "default" else f"_{name}") for name, graph in self.built.graphs.items()]

    def _saved_model(self, graph: keras.Model, suffix: str) -> Conversion:
        import tensorflow as tf

        def write(path: Path) -> Run:
            write_graph_saved_model(path, graph)
            loaded = tf.saved_model.load(str(path))

            def run(inputs: Arrays) -> Arrays:
                tensors = {name: tf.convert_to_tensor(value) for name, value in inputs.items()}
                outputs = loaded.signatures["serving_default"](**tensors)
                return {name: np.asarray(value) for name, value in outputs.items()}

            return run

        return self._checked(graph, f"saved_model{suffix}", None, write)

    def _onnx(self, graph: keras.Model, suffix: str) -> Conversion:
        def write(path: Path) -> Run:
            onnx_format.write_onnx(graph, path)
            return onnx_format.open_onnx(path)

        return self._checked(graph, f"model{suffix}.onnx", None, write)

    def _tensorrt(self, graph: keras.Model, suffix: str) -> Conversion:
        tensorrt_format.check_tensorrt()

        def write(path: Path) -> Run:
            path.mkdir()
            onnx_format.write_onnx(graph, path / "model.onnx")
            return tensorrt_format.open_tensorrt(path / "model.onnx", path)

        return self._checked(graph, f"tensorrt{suffix}", "float16", write)

    def _litert(self, graph: keras.Model, suffix: str) -> Conversion:
        inputs = self._inputs_of(graph)
        if variable_inputs(graph) and self.length is not None:
            shapes = {name: spec.shape.as_list()[1:] for name, spec in signature(graph, length=self.length).items()}
            inputs = fixed_length(inputs, shapes, self.built.data.padding_values())
        any_batch = [True]

        def write(path: Path) -> Run:
            any_batch[0] = litert_format.write_litert(graph, path, self.quantize, self.length, inputs)
            return litert_format.open_litert(path)

        quantized = f".{self.quantize}" if self.quantize else ""
        return self._checked(graph, f"model{suffix}{quantized}.tflite", self.quantize, write, inputs, any_batch)

    def _checked(
        self,
        graph: keras.Model,
        name: str,
        quantize: str | None,
        write: Callable[[Path], Run],
        inputs: Arrays | None = None,
        any_batch: list[bool] | None = None,
    ) -> Conversion:
        """Writes aside, compares, and moves into place what is right."""
        inputs = self._inputs_of(graph) if inputs is None else inputs
        tolerance = TOLERANCES[quantize] if self.tolerance is None else self.tolerance
        self.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.directory, prefix=".converting-") as folder:
            path = Path(folder) / name
            run = write(path)
            one_by_one = any_batch is not None and not any_batch[0]
            differences = compare(original(graph), run, inputs, one_by_one=one_by_one)
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

    def _inputs_of(self, graph: keras.Model) -> Arrays:
        return {name: self.inputs[name] for name in signature(graph)}
