"""Parameters of the networks of the zoo."""

from enum import StrEnum

from scena.model.zoo.catalogue import MODELS
from scena.params import Params, param

SMALLEST_FACTOR = 0.01


class Framework(StrEnum):
    """The numbers a network computes with."""

    TENSORFLOW = "tensorflow"
    REAL = "upstride_real"
    TYPE1 = "upstride_type1"
    TYPE2 = "upstride_type2"
    TYPE3 = "upstride_type3"

    @property
    def algebra(self) -> str:
        """The name of its algebra."""
        return "real" if self is Framework.TENSORFLOW else self.value.removeprefix("upstride_")


class DataFormat(StrEnum):
    """The order of the axes inside a network; images always come as NHWC."""

    NHWC = "NHWC"
    NCHW = "NCHW"

    @property
    def keras_name(self) -> str:
        """Its name in Keras."""
        return "channels_last" if self is DataFormat.NHWC else "channels_first"


class WayIn(StrEnum):
    """How an image becomes elements of the algebra."""

    BASIC = "basic"
    LEARNED = "learned"
    JOINT = "joint"
    GRAYSCALE = "grayscale"


class WayOut(StrEnum):
    """How elements of the algebra become real numbers."""

    BASIC = "basic"
    CONCAT = "concat"
    AVG_POOL = "avg_pool"
    MAX_POOL = "max_pool"
    NORM = "norm"


class Leave(StrEnum):
    """Where a network leaves the algebra."""

    BEFORE = "before_last"
    AFTER = "after_last"


class BatchNorm(StrEnum):
    """How the components are normalised."""

    COMPONENT = "component"
    WHITENING = "whitening"


class AlgebraParams(Params):
    """How a network of type 1, 2 or 3 uses its algebra."""

    way_in: WayIn = param(
        WayIn.BASIC,
        help="basic: the image is the first component; learned: small convolutions make the others; "
        "for type 2 also joint (0, R, G, B) and grayscale (grey, R, G, B)",
    )
    way_out: WayOut = param(
        WayOut.CONCAT, help="concat: all components; basic: the first; avg_pool, max_pool, norm: over them"
    )
    leave: Leave = param(Leave.BEFORE, help="leave the algebra before or after the last dense layer")
    batch_norm: BatchNorm = param(
        BatchNorm.COMPONENT, help="component: each by itself; whitening: also makes them uncorrelated"
    )
    shared_dropout: bool = param(False, help="dropout drops all components of an element at once")


class NetworkParams(Params):
    """A network of the zoo."""

    name: str = param("ResNet50", choices=list(MODELS), help="the network; `scena zoo` lists them")
    input_size: list[int] = param([224, 224, 3], gt=0, help="height, width and channels of the images")
    num_classes: int = param(1000, ge=0, help="number of classes; 0: the output is the features before the classifier")
    factor: float = param(
        1, ge=SMALLEST_FACTOR, help="divides the number of channels of every layer; below 1 it widens them"
    )
    framework: Framework = param(Framework.TENSORFLOW, help="real numbers, or the algebra of type 1, 2 or 3")
    data_format: DataFormat = param(DataFormat.NHWC, help="order of the axes inside the network")
    depth: list[float] | None = param(
        None, gt=0, le=1000, help="ResNet and MobileNetV2: blocks of each stage, or one number that multiplies them"
    )
    dropout: float | None = param(None, ge=0, lt=1, help="dropout rate of a network that has dropout; default: its own")
    l2: float = param(0.0, ge=0, help="weight of the L2 penalty on all kernels")
    embedding: int | None = param(None, ge=1, help="features of the bottleneck of a face network; default: its own")
    variant: str | None = param(
        None, help="another published form of AlexNet or a CIFAR ResNet; `scena zoo --options` lists them"
    )
    algebra: AlgebraParams = param(help="how the algebra is used")

    def __post_init__(self) -> None:
        if len(self.input_size) != 3:
            raise ValueError(f"input_size takes height, width and channels. Received: {self.input_size}")
