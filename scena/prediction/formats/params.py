"""The formats that an exported model can be converted to: one params class each. Needs no TensorFlow."""

from typing import ClassVar, Literal

from scena.params import Params, param

Quantize = Literal["float16", "dynamic", "int8"]


class ExportFormatParams(Params, abstract=True):
    """A format to convert models to. Subclass it with `name="myformat", builds=".myformat:MyFormat"` (an `ExportFormat`)."""

    backends: ClassVar[tuple[str, ...]] = ()
    """The Keras backends that can write it; default: all."""

    def tolerance(self) -> float:
        """How far outputs may be from the original's, unless a user allows more."""
        return 1e-4

    def check_ready(self) -> None:
        """Raises ConversionError if this machine cannot write or run the format; called before anything is loaded."""


class SavedModelParams(ExportFormatParams, name="saved_model", builds=".saved_model:SavedModel"):
    """TensorFlow's SavedModel."""


class OnnxParams(ExportFormatParams, name="onnx", builds=".onnx:Onnx"):
    """ONNX (extra 'onnx')."""

    backends = ("tensorflow",)


class LiteRTParams(ExportFormatParams, name="litert", builds=".litert:LiteRT"):
    """LiteRT, the former TensorFlow Lite (extra 'litert')."""

    quantize: Quantize | None = param(None, help="16-bit weights, 8-bit weights, or 8-bit weights and activations")
    length: int | None = param(None, ge=1, help="the fixed size of variable axes")

    backends = ("tensorflow",)

    def tolerance(self) -> float:
        return {None: 1e-4, "float16": 1e-2, "dynamic": 0.05, "int8": 0.1}[self.quantize]


class TensorRTParams(ExportFormatParams, name="tensorrt", builds=".tensorrt:TensorRT"):
    """TensorRT engines, built on the GPU that they will run on."""

    backends = ("tensorflow",)

    def tolerance(self) -> float:
        return 1e-2

    def check_ready(self) -> None:
        from scena.prediction.formats.tensorrt import check_tensorrt

        check_tensorrt()
