"""ONNX: converted by tf2onnx, run by onnxruntime."""

from pathlib import Path

import keras
import tensorflow as tf

from scena.prediction.formats.base import Arrays, ExportFormat, Run
from scena.prediction.formats.signature import ConversionError, by_name, convertible, quiet, signature

OPSET = 18


class Onnx(ExportFormat):
    """Writes one ONNX file for each graph."""

    def file_name(self, suffix: str) -> str:
        return f"model{suffix}.onnx"

    def write(self, graph: keras.Model, path: Path, inputs: Arrays) -> None:
        write_onnx(graph, path)

    def open(self, path: Path) -> Run:
        return open_onnx(path)


def write_onnx(graph: keras.Model, path: Path) -> None:
    """Converts a graph to an ONNX file with the same names of inputs and outputs; batch and variable axes stay free."""
    try:
        import tf2onnx
    except ImportError as error:
        raise ConversionError("Converting to ONNX needs more packages: pip install 'scena[onnx]'.") from error
    specs = signature(graph)
    serve = by_name(graph)
    names = list(specs)
    with quiet(), convertible():
        function = tf.function(lambda *values: serve(**dict(zip(names, values, strict=True))), autograph=False)
        try:
            model, _ = tf2onnx.convert.from_function(function, list(specs.values()), opset=OPSET)
        except Exception as error:  # tf2onnx raises what it meets
            raise ConversionError(f"{graph.name!r} cannot be converted to ONNX: {_first_line(error)}") from error
    path.write_bytes(model.SerializeToString())


def open_onnx(path: Path) -> Run:
    """The converted model, on the CPU."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ConversionError("Checking an ONNX file needs onnxruntime: pip install 'scena[onnx]'.") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ConversionError(f"onnxruntime cannot load the converted model: {_first_line(error)}") from error
    names = [output.name for output in session.get_outputs()]

    def run(inputs: Arrays) -> Arrays:
        return dict(zip(names, session.run(None, inputs), strict=True))

    return run


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
