"""The layers and options that networks of the zoo are written with. Numbers of channels are always those of one component.

`Layers` itself only tracks shapes and counts, for `scena zoo`; `KerasLayers` creates Keras layers of any framework. No Keras here.
It counts as `flops` does; a test compares the two for every network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from scena.errors import ModelError
from scena.model.layers.algebra import get_algebra
from scena.model.layers.windows import channel_axis, slide
from scena.model.zoo.params import AlgebraParams, BatchNorm, DataFormat, Framework, Leave, WayIn, WayOut

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
    """The shared settings of all layers of a network."""

    framework: Framework
    factor: float
    data_format: DataFormat
    l2: float
    algebra: AlgebraParams


class Shape(NamedTuple):
    """Stands for a tensor by its shape (NHWC), with a batch of one."""

    shape: tuple[int, ...]


@dataclass
class Totals:
    """The counts so far."""

    parameters: int = 0
    trainable: int = 0
    multiply_adds: int = 0

    def weigh(self, trainable: int, state: int = 0) -> None:
        """Adds parameters, and state that is not trained."""
        self.parameters += trainable + state
        self.trainable += trainable

    @property
    def flops(self) -> int:
        """Two floating point operations for each multiply-add."""
        return 2 * self.multiply_adds


class Layers:
    """The layers of networks, for one setting. Each method applies a layer to a tensor; here that is a `Shape`."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.totals = Totals()
        self.algebra = get_algebra(setting.framework.algebra)
        self.components = self.algebra.components
        self.data_format = setting.data_format.keras_name
        self.axis = channel_axis(self.data_format)

    # Numbers

    def channels(self, number: float) -> int:
        """A number of channels, divided by the factor."""
        return max(1, int(number / self.setting.factor + 1e-9))  # 1e-9: the rounding error of factors such as 0.7

    def count(self, x: Tensor) -> int:
        """The channels of one component of a tensor."""
        return int(x.shape[channel_axis(self.data_format, len(x.shape))]) // self.components

    def size(self, x: Tensor) -> tuple[int, int]:
        """Height and width."""
        return (x.shape[2], x.shape[3]) if self.axis == 1 else (x.shape[1], x.shape[2])

    def _image(self, size: Sequence[int | None], channels: int) -> Shape:
        height, width = (side or 0 for side in size)
        return Shape((1, height, width, channels * self.components))

    def _windows(self, x: Tensor, kernel: Size, strides: int, padding: str) -> list[int | None]:
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        return [slide(side, window, strides, padding) for side, window in zip(self.size(x), kernel, strict=True)]

    # Layers with weights

    def conv(self, x: Tensor, filters: int, kernel: Size, strides: int = 1, padding: str = "same", bias: bool = True,
             activation: str | None = None, name: str | None = None) -> Tensor:  # fmt: skip
        """A convolution."""
        outputs = self._image(self._windows(x, kernel, strides, padding), filters)
        weights = prod((kernel, kernel) if isinstance(kernel, int) else kernel) * self.count(x) * filters
        self.totals.weigh(self.components * (weights + bias * filters))
        self.totals.multiply_adds += prod(self.size(outputs)) * weights * self.components**2
        return outputs

    def depthwise(self, x: Tensor, kernel: int, strides: int = 1, padding: str = "same") -> Tensor:
        """A depthwise convolution without bias."""
        outputs = self._image(self._windows(x, kernel, strides, padding), self.count(x))
        weights = kernel * kernel * self.count(x)
        self.totals.weigh(self.components * weights)
        self.totals.multiply_adds += prod(self.size(outputs)) * weights * self.components**2
        return outputs

    def separable(self, x: Tensor, filters: int, kernel: int, strides: int = 1, padding: str = "same") -> Tensor:
        """A depthwise convolution and one of 1 × 1, without bias."""
        return self.conv(self.depthwise(x, kernel, strides, padding), filters, 1, bias=False)

    def dense(self, x: Tensor, units: int, activation: str | None = None, name: str | None = None,
              bias: bool = True) -> Tensor:  # fmt: skip
        """A dense layer."""
        weights = self.count(x) * units
        self.totals.weigh(self.components * (weights + bias * units))
        self.totals.multiply_adds += weights * self.components**2
        return Shape((1, units * self.components))

    def batch_norm(self, x: Tensor, epsilon: float = 1e-3, momentum: float = 0.99, scale: bool = True) -> Tensor:
        """Batch normalisation of each component, or of all together."""
        channels, n = self.count(x), self.components
        if n > 1 and self.setting.algebra.batch_norm is BatchNorm.WHITENING:
            self.totals.weigh(channels * (n + scale * n * (n + 1) // 2), channels * (n + n * n))
        else:
            self.totals.weigh(channels * n * (1 + scale), 2 * channels * n)
        return x

    def prelu(self, x: Tensor) -> Tensor:
        """ReLU with a learned slope for each channel."""
        self.totals.weigh(x.shape[-1])
        return x

    # Layers without weights

    def activate(self, x: Tensor, name: str = "relu") -> Tensor:
        """An activation by its Keras name."""
        return x

    def leaky_relu(self, x: Tensor, slope: float) -> Tensor:
        """ReLU that lets a part of negative values through."""
        return x

    def max_pool(self, x: Tensor, size: int, strides: int, padding: str = "valid") -> Tensor:
        """The largest value of each window."""
        return self._image(self._windows(x, size, strides, padding), self.count(x))

    def avg_pool(self, x: Tensor, size: int, strides: int, padding: str = "valid") -> Tensor:
        """The mean of each window."""
        return self._image(self._windows(x, size, strides, padding), self.count(x))

    def global_pool(self, x: Tensor, keepdims: bool = False) -> Tensor:
        """The mean over the image."""
        return self._image((1, 1), self.count(x)) if keepdims else Shape((1, x.shape[-1]))

    def pad(self, x: Tensor, padding: int | Padding) -> Tensor:
        """Zeros around the image."""
        sides = ((padding, padding), (padding, padding)) if isinstance(padding, int) else padding
        return self._image([side + sum(more) for side, more in zip(self.size(x), sides, strict=True)], self.count(x))

    def pad_for_stride(self, x: Tensor, kernel: int) -> Tensor:
        """Zeros that centre a window of stride 2 without padding, for odd and even images."""
        half = kernel // 2
        height, width = ((half - (1 - size % 2), half) for size in self.size(x))
        return self.pad(x, (height, width))

    def crop(self, x: Tensor, cropping: Padding) -> Tensor:
        """Removes rows and columns."""
        return self._image([side - sum(less) for side, less in zip(self.size(x), cropping, strict=True)], self.count(x))

    def add(self, tensors: Sequence[Tensor]) -> Tensor:
        """The sum."""
        assert len({x.shape for x in tensors}) == 1, [x.shape for x in tensors]
        return tensors[0]

    def multiply(self, tensors: Sequence[Tensor]) -> Tensor:
        """The product with a gate, component by component."""
        return tensors[0]

    def scale(self, x: Tensor, factor: float) -> Tensor:
        """The tensor times a number."""
        return x

    def concat(self, tensors: Sequence[Tensor]) -> Tensor:
        """The channels of several tensors side by side."""
        return self._image(self.size(tensors[0]), sum(map(self.count, tensors)))

    def flatten(self, x: Tensor) -> Tensor:
        """One vector."""
        return Shape((1, prod(x.shape)))

    def pad_channels(self, x: Tensor, channels: int) -> Tensor:
        """More channels, filled with zeros."""
        return self._image(self.size(x), channels)

    def dropout(self, x: Tensor, rate: float) -> Tensor:
        """Dropout, of single numbers or of whole elements of the algebra; none with a rate of 0."""
        return x

    def drop_path(self, x: Tensor, rate: float) -> Tensor:
        """Drops the whole tensor of some samples."""
        return x

    # In and out

    def enter(self, image: Tensor) -> Tensor:
        """From an NHWC image to the data format and the algebra of the network."""
        channels, way = image.shape[-1], self.setting.algebra.way_in
        if self.components == 1:
            return image
        if way is WayIn.LEARNED:  # two batch normalisations and two convolutions for each other component
            others = self.components - 1
            weights = 9 * channels * channels
            self.totals.weigh(others * 2 * (weights + channels + 2 * channels), others * 2 * 2 * channels)
            self.totals.multiply_adds += others * 2 * prod(self.size(image)) * weights
        return self._image(self.size(image), 1 if way in (WayIn.JOINT, WayIn.GRAYSCALE) else channels)

    def leave(self, x: Tensor) -> Tensor:
        """From the algebra to real numbers."""
        return x if self.setting.algebra.way_out is WayOut.CONCAT else Shape((*x.shape[:-1], self.count(x)))

    def as_nhwc(self, x: Tensor) -> Tensor:
        """A real map in the data format of images."""
        return x

    @property
    def real(self) -> "Layers":
        """The same layers outside of the algebra."""
        layers = type(self)(self.setting._replace(framework=Framework.TENSORFLOW))
        layers.totals = self.totals
        return layers

    @property
    def leaves_before(self) -> bool:
        """Whether the algebra ends before the last layer with weights."""
        return self.components > 1 and self.setting.algebra.leave is Leave.BEFORE

    def classify(self, x: Tensor, units: int) -> Tensor:
        """The last dense layer, and the way out of the algebra before or after it; only the way out with 0 units."""
        if not units:
            return self.leave(x)
        if self.leaves_before:
            return self.real.dense(self.leave(x), units, name=CLASSIFIER)
        return self.leave(self.dense(x, units, name=CLASSIFIER))

    def classify_map(self, x: Tensor, units: int) -> Tensor:
        """The same with a convolution of 1 × 1, for networks whose classifier looks at each position."""
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
