"""TensorRT: engines that onnxruntime builds from an ONNX file, and runs. They fit the kind of GPU they were built on."""

from pathlib import Path
from typing import TYPE_CHECKING

from scena.errors import ConversionError
from scena.prediction.formats.base import Arrays, ExportFormat, Run

if TYPE_CHECKING:
    import keras

PROVIDER = "TensorrtExecutionProvider"
NEEDS = (
    "TensorRT engines are built on the GPU that they will run on: --format tensorrt needs an NVIDIA GPU, TensorRT and "
    "onnxruntime-gpu (pip install onnxruntime-gpu tensorrt)."
)
INSTEAD = (
    "Here --format onnx writes what they are built from; there: trtexec --onnx=model.onnx --saveEngine=model.engine."
)


class TensorRT(ExportFormat):
    """Writes a folder with an ONNX file and its engines for each graph."""

    def file_name(self, suffix: str) -> str:
        return f"tensorrt{suffix}"

    def write(self, graph: "keras.Model", path: Path, inputs: Arrays) -> None:
        from scena.prediction.formats.onnx import write_onnx

        path.mkdir()
        write_onnx(graph, path / "model.onnx")

    def open(self, path: Path) -> Run:
        return open_tensorrt(path / "model.onnx", path)


def check_tensorrt() -> None:
    """Raises ConversionError, and says what is needed, where no engine can be built."""
    try:
        import onnxruntime
    except ImportError:
        raise ConversionError(f"{NEEDS} onnxruntime is not installed. {INSTEAD}") from None
    available = onnxruntime.get_available_providers()
    if PROVIDER not in available:
        raise ConversionError(f"{NEEDS} This onnxruntime has only {', '.join(available)}. {INSTEAD}")


def open_tensorrt(model: Path, engines: Path) -> Run:
    """The model of an ONNX file in TensorRT; its engines are kept in a folder, where onnxruntime finds them again."""
    import onnxruntime

    options = {"trt_engine_cache_enable": True, "trt_engine_cache_path": str(engines)}
    session = onnxruntime.InferenceSession(str(model), providers=[(PROVIDER, options)])
    if PROVIDER not in session.get_providers():  # it goes on with the CPU
        raise ConversionError(f"{NEEDS} No such GPU can be used here. {INSTEAD}")
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, inputs), strict=True))
