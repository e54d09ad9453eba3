"""Parameters of a prediction, of what runs a model, of the formats to convert it to, and of a service. No Keras here."""

from pathlib import Path
from typing import ClassVar, Literal

from scena.backends.params import DeviceParams
from scena.data.params import DataPipelineParams
from scena.errors import ConversionError
from scena.params import Params, param, short_name

Quantize = Literal["float16", "dynamic", "int8"]


class RuntimeParams(Params, abstract=True):
    """What runs an exported model. Subclass it with `name="myruntime", builds=".myruntime:MyRuntime"` (a `Runtime`)."""

    needs_keras: ClassVar[bool] = False
    """Whether Keras and its backend are loaded, and devices selected, before the model is opened."""


class KerasRuntimeParams(RuntimeParams, name="keras", builds=".runtimes.base:KerasRuntime"):
    """Keras, with the backend of `KERAS_BACKEND`."""

    needs_keras = True


class AutoRuntimeParams(RuntimeParams, name="auto", builds=".runtimes.base:KerasRuntime"):
    """onnx, openvino or litert if the export has such a model that was verified and the CPU is used; else keras."""


class ConvertedRuntimeParams(RuntimeParams, abstract=True):
    """Runs what an export format wrote, on the CPU and without Keras. Subclass it as `RuntimeParams`, and name the format."""

    threads: int | None = param(
        None, ge=1, help="threads of one call (default: that of the library, mostly one per core)"
    )

    def format(self) -> "ExportFormatParams":
        """The format that wrote the model, with its options."""
        raise NotImplementedError(f"{type(self).__name__} must name the format that it runs: override format().")


class OnnxRuntimeParams(ConvertedRuntimeParams, name="onnx", builds=".runtimes.onnx:OnnxRuntime"):
    """ONNX Runtime (extra 'onnx')."""

    def format(self) -> "ExportFormatParams":
        return OnnxParams()


class OpenVINORuntimeParams(ConvertedRuntimeParams, name="openvino", builds=".runtimes.openvino:OpenVINORuntime"):
    """OpenVINO (extra 'openvino')."""

    def format(self) -> "ExportFormatParams":
        return OpenVINOParams()


class LiteRTRuntimeParams(ConvertedRuntimeParams, name="litert", builds=".runtimes.litert:LiteRTRuntime"):
    """LiteRT (extra 'litert')."""

    quantize: Quantize | None = param(None, help="the model that was quantized so (default: the one that was not)")

    def format(self) -> "ExportFormatParams":
        return LiteRTParams(quantize=self.quantize)


class PredictorParams(Params, builds=".predictor:Predictor"):
    """How samples are run through a trained model."""

    pipeline: DataPipelineParams = param(flat=True, help="how batches are made")
    device: DeviceParams = param(flat=True, help="what to compute on")
    runtime: RuntimeParams = param(AutoRuntimeParams(), help="what runs the model")
    run_eagerly: bool = param(False, help="run op by op, so that a debugger stops inside the model")
    include_targets: bool = param(False, help="keep the targets of the samples, where the data has them")


class VoterParams(Params, builds=".voting:Voter"):
    """How the outputs of several models are combined. Subclass it with `builds=".voter:MyVoter"`."""


class ExportFormatParams(Params, abstract=True):
    """A format to convert models to. Subclass it with `name="myformat", builds=".myformat:MyFormat"` (an `ExportFormat`)."""

    backends: ClassVar[tuple[str, ...]] = ()
    """The Keras backends that can write it; default: all."""

    def tolerance(self) -> float:
        """How far outputs may be from the original's, unless a user allows more."""
        return 1e-4

    packages: ClassVar[tuple[str, ...]] = ()
    """What writes and runs it beside Keras; the modules that `check_ready` looks for."""

    def check_ready(self) -> None:
        """Raises ConversionError if this machine cannot write or run the format; called before anything is loaded."""
        from importlib.util import find_spec

        for package in self.packages:
            if find_spec(package) is None:
                name = short_name(type(self))
                raise ConversionError(f"The format {name} needs {package}: pip install 'scena[{name}]'.")


class PlainKerasParams(ExportFormatParams, name="keras", builds=".formats.keras:PlainKeras"):
    """Keras' own format, in layers of Keras only: it needs neither Scena nor the scenario's code."""


class SavedModelParams(ExportFormatParams, name="saved_model", builds=".formats.saved_model:SavedModel"):
    """TensorFlow's SavedModel."""


class OnnxParams(ExportFormatParams, name="onnx", builds=".formats.onnx:Onnx"):
    """ONNX (extra 'onnx')."""

    backends = ("tensorflow",)
    packages = ("tf2onnx", "onnxruntime")


class OpenVINOParams(ExportFormatParams, name="openvino", builds=".formats.openvino:OpenVINO"):
    """OpenVINO's own format, by way of ONNX (extra 'openvino')."""

    backends = ("tensorflow",)
    packages = ("tf2onnx", "openvino")


class LiteRTParams(ExportFormatParams, name="litert", builds=".formats.litert:LiteRT"):
    """LiteRT, the former TensorFlow Lite (extra 'litert')."""

    quantize: Quantize | None = param(None, help="16-bit weights, 8-bit weights, or 8-bit weights and activations")
    length: int | None = param(None, ge=1, help="the fixed size of variable axes")

    backends = ("tensorflow",)
    packages = ("ai_edge_litert",)

    def tolerance(self) -> float:
        return {None: 1e-4, "float16": 1e-2, "dynamic": 0.05, "int8": 0.1}[self.quantize]


class TensorRTParams(ExportFormatParams, name="tensorrt", builds=".formats.onnx:TensorRT"):
    """TensorRT engines, built on the GPU that they will run on."""

    backends = ("tensorflow",)

    def tolerance(self) -> float:
        return 1e-2

    def check_ready(self) -> None:
        from scena.prediction.formats.onnx import check_tensorrt

        check_tensorrt()


class ServeParams(Params):
    """Where the service listens, and what it accepts."""

    host: str = param("127.0.0.1", help="the address to listen on; the default is reachable from this machine only")
    port: int = param(8501, ge=0, le=65535, help="the port to listen on (0: a free one)")
    name: str | None = param(None, help="the model's name in addresses (default: that of the scenario)")
    max_batch: int = param(32, ge=1, help="largest number of samples that are predicted together")
    max_delay: float = param(1.0, ge=0, help="milliseconds without a new sample after which a batch begins")
    max_queue: int = param(256, ge=1, help="samples that may be queued; more are refused with status 429")
    max_body: int = param(10_000_000, ge=1, help="largest request in bytes; larger ones are refused with status 413")
    max_pixels: int = param(
        50_000_000, ge=1, help="largest number of pixels of all images of a request; more are refused with status 413"
    )
    body_timeout: float = param(
        10.0, gt=0, help="seconds for the head of a request to arrive, and then for its body; else status 408"
    )
    time_limit: float = param(30.0, gt=0, help="seconds until a response must be ready; else status 504")
    token_file: Path | None = param(
        None,
        help="file with the bearer tokens that are accepted, one in a line (default: SCENA_SERVE_TOKEN of the environment, if it "
        "is set); requests without one are refused with status 401",
    )
    tls_cert: Path | None = param(
        None, help="PEM file with the certificate, and those between it and the root: serve HTTPS"
    )
    tls_key: Path | None = param(
        None, help="PEM file with the key of the certificate (default: it is in the same file)"
    )
    reload: float = param(
        2.0,
        ge=0,
        help="seconds between looks at the export; one that was replaced is loaded, and takes over (0: never)",
    )
    shutdown_time: int = param(10, ge=0, help="seconds for running requests to finish at shutdown")
