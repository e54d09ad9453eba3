"""LiteRT (the former TensorFlow Lite): converted by TensorFlow, run by the LiteRT interpreter."""

import logging
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from scena.prediction.formats.base import Arrays, ExportFormat, Run
from scena.prediction.formats.check import fixed_length
from scena.prediction.formats.params import LiteRTParams, Quantize
from scena.prediction.formats.signature import (
    ConversionError,
    by_name,
    convertible,
    quiet,
    signature,
    variable_inputs,
)

logger = logging.getLogger(__name__)


class LiteRT(ExportFormat):
    """Writes one LiteRT file for each graph."""

    params: LiteRTParams

    def file_name(self, suffix: str) -> str:
        return f"model{suffix}{f'.{self.params.quantize}' if self.params.quantize else ''}.tflite"

    def inputs(self, graph: keras.Model, inputs: Arrays, padding: dict[str, object]) -> Arrays:
        """Cut or padded to the fixed length, if there is one."""
        if not variable_inputs(graph) or self.params.length is None:
            return inputs
        shapes = {name: spec.shape.as_list()[1:] for name, spec in signature(graph, length=self.params.length).items()}
        return fixed_length(inputs, shapes, padding)

    def write(self, graph: keras.Model, path: Path, inputs: Arrays) -> None:
        self.one_by_one = not write_litert(graph, path, self.params.quantize, self.params.length, inputs)

    def open(self, path: Path) -> Run:
        return open_litert(path)


def write_litert(
    graph: keras.Model, path: Path, quantize: Quantize | None, length: int | None, examples: Arrays
) -> bool:
    """Converts a graph to a LiteRT file with the signature `serving_default`.

    Args:
        graph: the model.
        path: the file to write.
        quantize: float16 weights, 8-bit weights (dynamic), or 8-bit weights and activations (int8).
        length: what takes the place of variable axes.
        examples: inputs that int8 measures the range of activations with.

    Returns:
        Whether the file takes batches of any size; else it takes one sample at a time.
    """
    variable = variable_inputs(graph)
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
    graph: keras.Model, batch: int | None, length: int | None, quantize: Quantize | None, examples: Arrays
) -> bytes:
    with tempfile.TemporaryDirectory() as folder, quiet(), convertible():
        module = tf.Module()
        module.variables_of_graph = [variable.value for variable in graph.variables]
        serve = tf.function(by_name(graph), autograph=False).get_concrete_function(**signature(graph, batch, length))
        try:
            tf.saved_model.save(module, folder, signatures={"serving_default": serve})
            converter = tf.lite.TFLiteConverter.from_saved_model(folder)
            _set_quantization(converter, quantize, examples)
            converted: bytes = converter.convert()
        except Exception as error:  # the converter raises several kinds
            raise ConversionError(f"{graph.name!r} cannot be converted to LiteRT: {_reason(error)}") from error
        return converted


def _set_quantization(converter: Any, quantize: Quantize | None, examples: Arrays) -> None:
    if quantize is None:
        return
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantize == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if quantize == "int8":

        def rows() -> Iterator[Arrays]:
            for row in range(len(next(iter(examples.values())))):
                yield {name: values[row : row + 1] for name, values in examples.items()}

        converter.representative_dataset = rows


def open_litert(path: Path) -> Run:
    """The converted model."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise ConversionError("Checking a LiteRT file needs more packages: pip install 'scena[litert]'.") from error
    with quiet():
        interpreter = Interpreter(model_path=str(path))
        runner = interpreter.get_signature_runner("serving_default")

    def run(inputs: Arrays) -> Arrays:
        with quiet():
            return dict(runner(**inputs))

    return run


def _reason(error: Exception) -> str:
    text = str(error).strip()
    missing = sorted(set(re.findall(r"'?tf\.(\w+)'? op", text)))
    if missing:
        return f"LiteRT has no operation {', '.join(missing)} (or not with these shapes)."
    return (text or type(error).__name__).splitlines()[0][:300]
