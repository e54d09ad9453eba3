"""ONNX: converted by tf2onnx, run by onnxruntime; and TensorRT, whose engines onnxruntime builds from an ONNX file.

Running a file needs no TensorFlow.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.errors import ConversionError, first_line
from scena.prediction.formats.base import Arrays, ExportFormat, Run, convertible, quiet

if TYPE_CHECKING:
    import keras

OPSET = 18
TENSORRT = "TensorrtExecutionProvider"
NEEDS = (
    "TensorRT engines are built on the GPU that they will run on: --format tensorrt needs an NVIDIA GPU, TensorRT and "
    "onnxruntime-gpu (pip install onnxruntime-gpu tensorrt)."
)
INSTEAD = (
    "Here --format onnx writes what they are built from; there: trtexec --onnx=model.onnx --saveEngine=model.engine."
)


class Onnx(ExportFormat):
    """Writes one ONNX file for each graph."""

    package = "onnxruntime"

    def file_name(self, suffix: str) -> str:
        return f"model{suffix}.onnx"

    def write(self, graph: "keras.Model", path: Path, inputs: Arrays) -> None:
        write_onnx(graph, path)

    def open(self, path: Path) -> Run:
        return open_onnx(path)


def write_onnx(graph: "keras.Model", path: Path) -> None:
    """Converts a graph to an ONNX file with the same names of inputs and outputs; batch and variable axes stay free."""
    try:
        import tf2onnx
    except ImportError as error:
        raise ConversionError("Converting to ONNX needs more packages: pip install 'scena[onnx]'.") from error
    import tensorflow as tf

    from scena.prediction.formats.saved_model import by_name, signature

    specs, serve = signature(graph), by_name(graph)
    with quiet(), convertible():
        function = tf.function(lambda *values: serve(**dict(zip(specs, values, strict=True))), autograph=False)
        try:
            model, _ = tf2onnx.convert.from_function(function, list(specs.values()), opset=OPSET)
        except Exception as error:  # tf2onnx raises what it meets
            raise ConversionError(f"{graph.name!r} cannot be converted to ONNX: {first_line(error)[:300]}") from error
    path.write_bytes(model.SerializeToString())


def open_onnx(path: Path) -> Run:
    """The model of a file, on the CPU."""
    try:
        return _runner(open_session(path))
    except ImportError as error:
        raise ConversionError("Checking an ONNX file needs onnxruntime: pip install 'scena[onnx]'.") from error
    except Exception as error:
        raise ConversionError(f"onnxruntime cannot load the converted model: {first_line(error)[:300]}") from error


def open_session(path: Path, threads: int | None = None) -> Any:
    """The session of a file, on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if threads is not None:
        options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _runner(session: Any) -> Run:
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, inputs), strict=True))


class TensorRT(ExportFormat):
    """Writes a folder with an ONNX file and its engines for each graph. Engines fit the kind of GPU they were built on."""

    package = "onnxruntime-gpu"

    def file_name(self, suffix: str) -> str:
        return f"tensorrt{suffix}"

    def write(self, graph: "keras.Model", path: Path, inputs: Arrays) -> None:
        path.mkdir()
        write_onnx(graph, path / "model.onnx")

    def open(self, path: Path) -> Run:
        """Builds the engines; they are kept in the folder, where onnxruntime finds them again."""
        import onnxruntime

        options = {"trt_engine_cache_enable": True, "trt_engine_cache_path": str(path)}
        session = onnxruntime.InferenceSession(str(path / "model.onnx"), providers=[(TENSORRT, options)])
        if TENSORRT not in session.get_providers():  # it falls back to the CPU
            raise ConversionError(f"{NEEDS} No such GPU can be used here. {INSTEAD}")
        return _runner(session)


def check_tensorrt() -> None:
    """Raises ConversionError, and says what is needed, where no engine can be built."""
    try:
        import onnxruntime
    except ImportError:
        raise ConversionError(f"{NEEDS} onnxruntime is not installed. {INSTEAD}") from None
    available = onnxruntime.get_available_providers()
    if TENSORRT not in available:
        raise ConversionError(f"{NEEDS} This onnxruntime has only {', '.join(available)}. {INSTEAD}")
