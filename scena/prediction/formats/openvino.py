"""OpenVINO's own format: read from ONNX, which tf2onnx writes. Running it needs no TensorFlow."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.errors import ConversionError, first_line
from scena.prediction.formats.base import Arrays, ExportFormat, Run
from scena.signals import own_signal_stack

if TYPE_CHECKING:
    import keras

MODEL = "model.xml"
"""The network; its weights are in the file beside it."""


class OpenVINO(ExportFormat):
    """Writes a folder for each graph."""

    package = "openvino"

    def file_name(self, suffix: str) -> str:
        return f"openvino{suffix}"

    def write(self, graph: "keras.Model", path: Path, inputs: Arrays) -> None:
        from scena.prediction.formats.onnx import write_onnx

        try:
            import openvino
        except ImportError as error:
            raise ConversionError(
                "Converting to OpenVINO needs more packages: pip install 'scena[openvino]'."
            ) from error
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "model.onnx"
            write_onnx(graph, source)
            path.mkdir()
            try:
                # 16-bit weights, its default, would be another model
                openvino.save_model(openvino.Core().read_model(source), path / MODEL, compress_to_fp16=False)
            except Exception as error:  # OpenVINO raises RuntimeError and others
                raise ConversionError(
                    f"{graph.name!r} cannot be converted to OpenVINO: {first_line(error)[:300]}"
                ) from error

    def open(self, path: Path) -> Run:
        with own_signal_stack():
            model = open_model(path)
        names = [port.any_name for port in model.outputs]

        def run(inputs: Arrays) -> Arrays:
            with own_signal_stack():
                return dict(zip(names, model(inputs).values(), strict=True))

        return run


def open_model(path: Path, threads: int | None = None) -> Any:
    """The compiled model of a folder, on the CPU, in the precision of its weights; calls at the same time wait for each other."""
    import openvino

    # processors with bfloat16 would use it, and answer otherwise; pinned, one thread of each model would share the first core
    options: dict[str, Any] = {"NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False}
    if threads is not None:
        options["INFERENCE_NUM_THREADS"] = threads
    return openvino.Core().compile_model(path / MODEL, "CPU", options)
