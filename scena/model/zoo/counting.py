"""Counts parameters and floating point operations of a network without building it, for `scena zoo`. No Keras here.

`flops` defines what is counted; a test compares the two for every network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from scena.model.layers.windows import slide
from scena.model.zoo.namespace import Layers, Padding, Setting, Size, Tensor
from scena.model.zoo.params import BatchNorm, Framework, WayIn, WayOut
from scena.model.zoo.request import request


class Shape(NamedTuple):
    """Represents a tensor by its shape, with a batch of one."""

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


def count_network(name: str, *args: Any, **kwargs: Any) -> Totals:
    """Counts a network; the arguments are those of `create_network`.

    Raises:
        ModelError: there is no such network, or it does not have what is asked for.
    """
    asked = request(name, *args, **kwargs)
    nn = CountingLayers(asked.setting)
    asked.build(nn, Shape((1, *asked.input_size)))
    return nn.totals


class CountingLayers(Layers):
    """Tracks shapes and adds up; `Layers` documents the methods.

    Shapes are kept as NHWC: the data format changes no number.
    """

    def __init__(self, setting: Setting, totals: Totals | None = None) -> None:
        super().__init__(setting._replace(data_format=type(setting.data_format).NHWC))
        self.totals = totals or Totals()
        self.components = self.algebra.components

    def _image(self, size: Sequence[int | None], channels: int) -> Shape:
        height, width = (side or 0 for side in size)
        return Shape((1, height, width, channels * self.components))

    def _windows(self, x: Tensor, kernel: Size, strides: int, padding: str) -> list[int | None]:
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        return [slide(side, window, strides, padding) for side, window in zip(self.size(x), kernel, strict=True)]

    def conv(self, x: Tensor, filters: int, kernel: Size, strides: int = 1, padding: str = "same", bias: bool = True,
             activation: str | None = None, name: str | None = None) -> Tensor:  # fmt: skip
        outputs = self._image(self._windows(x, kernel, strides, padding), filters)
        weights = prod((kernel, kernel) if isinstance(kernel, int) else kernel) * self.count(x) * filters
        self.totals.weigh(self.components * (weights + bias * filters))
        self.totals.multiply_adds += prod(self.size(outputs)) * weights * self.components**2
        return outputs

    def depthwise(self, x: Tensor, kernel: int, strides: int = 1, padding: str = "same") -> Tensor:
        outputs = self._image(self._windows(x, kernel, strides, padding), self.count(x))
        weights = kernel * kernel * self.count(x)
        self.totals.weigh(self.components * weights)
        self.totals.multiply_adds += prod(self.size(outputs)) * weights * self.components**2
        return outputs

    def separable(self, x: Tensor, filters: int, kernel: int, strides: int = 1, padding: str = "same") -> Tensor:
        return self.conv(self.depthwise(x, kernel, strides, padding), filters, 1, bias=False)

    def dense(self, x: Tensor, units: int, activation: str | None = None, name: str | None = None,
              bias: bool = True) -> Tensor:  # fmt: skip
        weights = self.count(x) * units
        self.totals.weigh(self.components * (weights + bias * units))
        self.totals.multiply_adds += weights * self.components**2
        return Shape((1, units * self.components))

    def batch_norm(self, x: Tensor, epsilon: float = 1e-3, momentum: float = 0.99, scale: bool = True) -> Tensor:
        channels, n = self.count(x), self.components
        if n > 1 and self.setting.algebra.batch_norm is BatchNorm.WHITENING:
            self.totals.weigh(channels * (n + scale * n * (n + 1) // 2), channels * (n + n * n))
        else:
            self.totals.weigh(channels * n * (1 + scale), 2 * channels * n)
        return x

    def prelu(self, x: Tensor) -> Tensor:
        self.totals.weigh(x.shape[-1])
        return x

    def activate(self, x: Tensor, name: str = "relu") -> Tensor:
        return x

    def leaky_relu(self, x: Tensor, slope: float) -> Tensor:
        return x

    def max_pool(self, x: Tensor, size: int, strides: int, padding: str = "valid") -> Tensor:
        return self._image(self._windows(x, size, strides, padding), self.count(x))

    avg_pool = max_pool

    def global_pool(self, x: Tensor, keepdims: bool = False) -> Tensor:
        return self._image((1, 1), self.count(x)) if keepdims else Shape((1, x.shape[-1]))

    def pad(self, x: Tensor, padding: int | Padding) -> Tensor:
        sides = ((padding, padding), (padding, padding)) if isinstance(padding, int) else padding
        return self._image([side + sum(more) for side, more in zip(self.size(x), sides, strict=True)], self.count(x))

    def crop(self, x: Tensor, cropping: Padding) -> Tensor:
        return self._image([side - sum(less) for side, less in zip(self.size(x), cropping, strict=True)], self.count(x))

    def add(self, tensors: Sequence[Tensor]) -> Tensor:
        assert len({x.shape for x in tensors}) == 1, [x.shape for x in tensors]
        return tensors[0]

    def multiply(self, tensors: Sequence[Tensor]) -> Tensor:
        return tensors[0]

    def scale(self, x: Tensor, factor: float) -> Tensor:
        return x

    def concat(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._image(self.size(tensors[0]), sum(map(self.count, tensors)))

    def flatten(self, x: Tensor) -> Tensor:
        return Shape((1, prod(x.shape)))

    def pad_channels(self, x: Tensor, channels: int) -> Tensor:
        return self._image(self.size(x), channels)

    def dropout(self, x: Tensor, rate: float) -> Tensor:
        return x

    def drop_path(self, x: Tensor, rate: float) -> Tensor:
        return x

    def enter(self, image: Tensor) -> Tensor:
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
        if self.setting.algebra.way_out is WayOut.CONCAT:
            return x
        return Shape((*x.shape[:-1], self.count(x)))

    def as_nhwc(self, x: Tensor) -> Tensor:
        return x

    @property
    def real(self) -> "CountingLayers":
        return CountingLayers(self.setting._replace(framework=Framework.TENSORFLOW), self.totals)
