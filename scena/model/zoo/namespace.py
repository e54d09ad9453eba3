"""The layers and options that networks of the zoo are written with. Numbers of channels are always those of one component.

`Layers` has two implementations: `keras_layers` creates Keras layers of any framework, `counting` only counts. No Keras here.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from scena.errors import ModelError
from scena.model.layers.algebra import get_algebra
from scena.model.layers.windows import channel_axis
from scena.model.zoo.params import AlgebraParams, DataFormat, Framework, Leave

Depth = float | Sequence[float]


class Options(NamedTuple):
    """The choices of a user; None for the network's own value."""

    num_classes: int = 1000
    depth: Depth | None = None
    dropout: float | None = None
    embedding: int | None = None

    def dropout_or(self, default: float) -> float:
        """The dropout rate."""
        return default if self.dropout is None else self.dropout

    def blocks(self, default: Sequence[int]) -> list[int]:
        """The blocks of each stage: the network's own, those given, or its own times the number given.

        Raises:
            ModelError: the depth is neither one number nor one for each stage.
        """
        if self.depth is None:
            return list(default)
        numbers = [float(self.depth)] if isinstance(self.depth, int | float) else [float(n) for n in self.depth]
        if len(numbers) == 1:
            numbers = [max(1, round(numbers[0] * blocks)) if 0 < numbers[0] <= 1000 else 0 for blocks in default]
        if len(numbers) != len(default) or any(n < 1 or n != int(n) for n in numbers):
            raise ModelError(
                f"depth is one number that multiplies the blocks, or the blocks of each of the {len(default)} stages "
                f"(default: {' '.join(map(str, default))}). Received: {self.depth!r}"
            )
        return [int(n) for n in numbers]


def make_divisible(value: float, divisor: int = 8) -> int:
    """The nearest multiple of the divisor, at least the divisor, and not more than a tenth below the value."""
    nearest = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * value else nearest


Tensor = Any
Size = int | tuple[int, int]
Padding = tuple[tuple[int, int], tuple[int, int]]
CLASSIFIER = "classifier"
"""The name of the last layer with weights of a classification network."""


class Setting(NamedTuple):
    """What all layers of one network share."""

    framework: Framework
    factor: float
    data_format: DataFormat
    l2: float
    algebra: AlgebraParams


class Layers(ABC):
    """The layers of networks, for one setting."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.algebra = get_algebra(setting.framework.algebra)
        self.data_format = setting.data_format.keras_name
        self.axis = channel_axis(self.data_format)

    # Numbers

    def channels(self, number: float) -> int:
        """A number of channels, divided by the factor."""
        return max(1, int(number / self.setting.factor + 1e-9))  # 1e-9: the rounding error of factors such as 0.7

    def count(self, x: Tensor) -> int:
        """The channels of one component of a tensor."""
        return int(x.shape[channel_axis(self.data_format, len(x.shape))]) // self.algebra.components

    def size(self, x: Tensor) -> tuple[int, int]:
        """Height and width."""
        return (x.shape[2], x.shape[3]) if self.axis == 1 else (x.shape[1], x.shape[2])

    # Layers with weights

    @abstractmethod
    def conv(self, x: Tensor, filters: int, kernel: Size, strides: int = 1, padding: str = "same", bias: bool = True,
             activation: str | None = None, name: str | None = None) -> Tensor:  # fmt: skip
        """A convolution."""

    @abstractmethod
    def depthwise(self, x: Tensor, kernel: int, strides: int = 1, padding: str = "same") -> Tensor:
        """A depthwise convolution without bias."""

    @abstractmethod
    def separable(self, x: Tensor, filters: int, kernel: int, strides: int = 1, padding: str = "same") -> Tensor:
        """A depthwise convolution and one of 1 × 1, without bias."""

    @abstractmethod
    def dense(self, x: Tensor, units: int, activation: str | None = None, name: str | None = None,
              bias: bool = True) -> Tensor:  # fmt: skip
        """A dense layer."""

    @abstractmethod
    def batch_norm(self, x: Tensor, epsilon: float = 1e-3, momentum: float = 0.99, scale: bool = True) -> Tensor:
        """Batch normalisation of each component, or of all together."""

    @abstractmethod
    def prelu(self, x: Tensor) -> Tensor:
        """ReLU with a learned slope for each channel."""

    # Layers without weights

    @abstractmethod
    def activate(self, x: Tensor, name: str = "relu") -> Tensor:
        """An activation by its Keras name."""

    @abstractmethod
    def leaky_relu(self, x: Tensor, slope: float) -> Tensor:
        """ReLU that lets a part of negative values through."""

    @abstractmethod
    def max_pool(self, x: Tensor, size: int, strides: int, padding: str = "valid") -> Tensor:
        """The largest value of each window."""

    @abstractmethod
    def avg_pool(self, x: Tensor, size: int, strides: int, padding: str = "valid") -> Tensor:
        """The mean of each window."""

    @abstractmethod
    def global_pool(self, x: Tensor, keepdims: bool = False) -> Tensor:
        """The mean over the image."""

    @abstractmethod
    def pad(self, x: Tensor, padding: int | Padding) -> Tensor:
        """Zeros around the image."""

    def pad_for_stride(self, x: Tensor, kernel: int) -> Tensor:
        """Zeros that centre a window of stride 2 without padding, for odd and even images."""
        half = kernel // 2
        height, width = ((half - (1 - size % 2), half) for size in self.size(x))
        return self.pad(x, (height, width))

    @abstractmethod
    def crop(self, x: Tensor, cropping: Padding) -> Tensor:
        """Removes rows and columns."""

    @abstractmethod
    def add(self, tensors: Sequence[Tensor]) -> Tensor:
        """The sum."""

    @abstractmethod
    def multiply(self, tensors: Sequence[Tensor]) -> Tensor:
        """The product with a gate, component by component."""

    @abstractmethod
    def scale(self, x: Tensor, factor: float) -> Tensor:
        """The tensor times a number."""

    @abstractmethod
    def concat(self, tensors: Sequence[Tensor]) -> Tensor:
        """The channels of several tensors side by side."""

    @abstractmethod
    def flatten(self, x: Tensor) -> Tensor:
        """One vector."""

    @abstractmethod
    def pad_channels(self, x: Tensor, channels: int) -> Tensor:
        """More channels, filled with zeros."""

    @abstractmethod
    def dropout(self, x: Tensor, rate: float) -> Tensor:
        """Dropout, of single numbers or of whole elements of the algebra; none with a rate of 0."""

    @abstractmethod
    def drop_path(self, x: Tensor, rate: float) -> Tensor:
        """Drops the whole tensor of some samples."""

    # In and out

    @abstractmethod
    def enter(self, image: Tensor) -> Tensor:
        """From an NHWC image to the data format and the algebra of the network."""

    @abstractmethod
    def leave(self, x: Tensor) -> Tensor:
        """From the algebra to real numbers."""

    @abstractmethod
    def as_nhwc(self, x: Tensor) -> Tensor:
        """A real map in the data format of images."""

    @property
    @abstractmethod
    def real(self) -> "Layers":
        """The same words outside of the algebra."""

    @property
    def leaves_before(self) -> bool:
        """Whether the algebra ends before the last layer with weights."""
        return self.algebra.components > 1 and self.setting.algebra.leave is Leave.BEFORE

    def classify(self, x: Tensor, units: int) -> Tensor:
        """The last dense layer, and the way out of the algebra before or after it; only the way out with 0 units."""
        if not units:
            return self.leave(x)
        if self.leaves_before:
            return self.real.dense(self.leave(x), units, name=CLASSIFIER)
        return self.leave(self.dense(x, units, name=CLASSIFIER))

    def classify_map(self, x: Tensor, units: int) -> Tensor:
        """The same with a convolution of 1 × 1, for networks whose classifier looks at each place."""
        if not units:
            return self.leave(x)
        if self.leaves_before:
            return self.real.conv(self.leave(x), units, 1, name=CLASSIFIER)
        return self.leave(self.conv(x, units, 1, name=CLASSIFIER))

    def embed(self, x: Tensor, units: int, epsilon: float) -> Tensor:
        """A dense bottleneck with batch normalisation (without scale), and the way out of the algebra before or after it."""
        own = self.real if self.leaves_before else self
        x = self.leave(x) if self.leaves_before else x
        x = own.batch_norm(own.dense(x, units), epsilon=epsilon, scale=False)
        return x if self.leaves_before else self.leave(x)
