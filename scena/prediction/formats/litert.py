"""LiteRT (the former TensorFlow Lite): converted by TensorFlow, run by the LiteRT interpreter. Running a file needs no TensorFlow."""

import logging
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scena.errors import ConversionError, first_line
from scena.prediction.formats.base import Arrays, ExportFormat, Run, convertible, quiet
from scena.prediction.params import LiteRTParams, Quantize

if TYPE_CHECKING:
    import keras

logger = logging.getLogger(__name__)


class LiteRT(ExportFormat):
    """Writes one LiteRT file for each graph."""

    package = "ai-edge-litert"

    params: LiteRTParams

    def file_name(self, suffix: str) -> str:
        return f"model{suffix}{f'.{self.params.quantize}' if self.params.quantize else ''}.tflite"

    def inputs(self, graph: "keras.Model", inputs: Arrays, padding: dict[str, object]) -> Arrays:
        """Cut or padded to the fixed length, if there is one."""
        if self.params.length is None:
            return inputs
        from scena.prediction.formats.saved_model import signature

        specs = signature(graph, length=self.params.length)
        return {name: _fixed(value, specs[name].shape[1:], padding.get(name, 0)) for name, value in inputs.items()}

    def write(self, graph: "keras.Model", path: Path, inputs: Arrays) -> None:
        self.one_by_one = not write_litert(graph, path, self.params.quantize, self.params.length, inputs)

    def open(self, path: Path) -> Run:
        return open_litert(path)


def _fixed(value: np.ndarray, sizes: Any, padding: object) -> np.ndarray:
    """A batch cut or padded to these sizes."""
    shape = (len(value), *sizes)
    region = tuple(slice(min(a, b)) for a, b in zip(shape, value.shape, strict=True))
    fixed = np.full(shape, padding, value.dtype)
    fixed[region] = value[region]
    return fixed


def write_litert(
    graph: "keras.Model", path: Path, quantize: Quantize | None, length: int | None, examples: Arrays
) -> bool:
    """Converts a graph to a LiteRT file with the signature `serving_default`; int8 measures the range of activations with
    `examples`.

    Returns whether the file takes batches of any size; else it takes one sample at a time.
    """
    from scena.prediction.formats.saved_model import signature

    variable = [name for name, spec in signature(graph).items() if None in spec.shape.as_list()[1:]]
    if variable and length is None:
        raise ConversionError(
            f"LiteRT needs inputs of a fixed size, but {', '.join(map(repr, variable))} of {graph.name!r} has a variable axis. "
            "Fix it with --length, for example --length 64."
        )
    failure: ConversionError | None = None
    for batch in (1,) if variable else (None, 1):  # recurrent layers need a fixed batch
        try:
            path.write_bytes(_convert(graph, batch, length, quantize, examples))
        except ConversionError as error:
            failure = failure or error
            continue
        if batch is not None:
            logger.info("%s takes one sample at a time.", path.name)
        return batch is None
    assert failure is not None
    raise failure


def _convert(
    graph: "keras.Model", batch: int | None, length: int | None, quantize: Quantize | None, examples: Arrays
) -> bytes:
    import tensorflow as tf

    from scena.prediction.formats.saved_model import by_name, signature

    with tempfile.TemporaryDirectory() as folder, quiet(), convertible():
        module = tf.Module()
        module.variables_of_graph = [variable.value for variable in graph.variables]
        serve = tf.function(by_name(graph), autograph=False).get_concrete_function(**signature(graph, batch, length))
        try:
            tf.saved_model.save(module, folder, signatures={"serving_default": serve})
            converter = tf.lite.TFLiteConverter.from_saved_model(folder)
            if quantize is not None:
                converter.optimizations = [tf.lite.Optimize.DEFAULT]
            if quantize == "float16":
                converter.target_spec.supported_types = [tf.float16]
            if quantize == "int8":
                converter.representative_dataset = lambda: _rows(examples)
            converted: bytes = converter.convert()
        except Exception as error:  # the converter raises several kinds
            raise ConversionError(f"{graph.name!r} cannot be converted to LiteRT: {_reason(error)}") from error
        return converted


def _rows(examples: Arrays) -> Iterator[Arrays]:
    for row in range(len(next(iter(examples.values())))):
        yield {name: values[row : row + 1] for name, values in examples.items()}


def _reason(error: Exception) -> str:
    missing = sorted(set(re.findall(r"'?tf\.(\w+)'? op", str(error))))
    if missing:
        return f"LiteRT has no operation {', '.join(missing)} (or not with these shapes)."
    return first_line(error)[:300]


def open_litert(path: Path) -> Run:
    """The model of a file."""
    with quiet():
        model = LiteRTModel(path)

    def run(inputs: Arrays) -> Arrays:
        with quiet():
            return model(inputs)

    return run


class LiteRTModel:
    """The model of a file, for one call at a time. It costs less than the runner of a signature, which resizes the inputs at each call.

    Args:
        path: the file.
        threads: of a call; the default is 1.
    """

    def __init__(self, path: Path, threads: int | None = None) -> None:
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError as error:
            raise ConversionError("Running a LiteRT file needs more packages: pip install 'scena[litert]'.") from error
        self._interpreter = Interpreter(model_path=str(path), num_threads=threads)
        runner = self._interpreter.get_signature_runner("serving_default")
        inputs, outputs = runner.get_input_details(), runner.get_output_details()
        self.sizes = {name: tuple(map(int, detail["shape_signature"][1:])) for name, detail in inputs.items()}
        """The axes of each input without that of the batch; -1 is any size."""
        self._inputs = [(name, detail["index"]) for name, detail in inputs.items()]
        self._outputs = [(name, detail["index"]) for name, detail in outputs.items()]
        self._shapes: list[tuple[int, ...]] | None = None

    def __call__(self, inputs: Arrays) -> Arrays:
        interpreter = self._interpreter
        shapes = [inputs[name].shape for name, _ in self._inputs]
        if shapes != self._shapes:
            self._shapes = None
            for (_, index), shape in zip(self._inputs, shapes, strict=True):
                interpreter.resize_tensor_input(index, shape)
            interpreter.allocate_tensors()
            self._shapes = shapes
        for name, index in self._inputs:
            interpreter.set_tensor(index, inputs[name])
        interpreter.reset_all_variables()  # a recurrent layer may keep its state in one
        interpreter.invoke()
        return {name: interpreter.get_tensor(index) for name, index in self._outputs}
