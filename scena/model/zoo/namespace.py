"""The layers a network of the zoo is written with: the same words for plain Keras layers and for those of any algebra.

Each word takes a tensor and gives a tensor. The number of channels is always the one of one component.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
from keras import layers

from scena.model.layers.algebra import get_algebra
from scena.model.layers.channels import channel_axis
from scena.model.layers.componentwise import AlgebraConcatenate, AlgebraDropout, AlgebraFlatten, AlgebraPadChannels
from scena.model.layers.convolution import AlgebraConv2D
from scena.model.layers.depthwise import AlgebraDepthwiseConv2D, AlgebraSeparableConv2D
from scena.model.layers.doors import IntoAlgebra, OutOfAlgebra
from scena.model.layers.linear import AlgebraDense
from scena.model.layers.normalization import WhiteningBatchNormalization
from scena.model.layers.portable import PortableConv2D, Transpose
from scena.model.zoo.params import AlgebraParams, BatchNorm, DataFormat, Framework, Leave

Tensor = Any
Size = int | tuple[int, int]
Padding = tuple[tuple[int, int], tuple[int, int]]


class Setting(NamedTuple):
    """What all layers of one network share."""

    framework: Framework = Framework.TENSORFLOW
    factor: int = 1
    data_format: DataFormat = DataFormat.NHWC
    l2: float = 0.0
    algebra: AlgebraParams = AlgebraParams()


class Layers:
    """Hands out the layers for one setting."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.algebra = get_algebra(setting.framework.algebra)
        self.plain = setting.framework is Framework.TENSORFLOW
        self.data_format = setting.data_format.keras_name
        self.axis = channel_axis(self.data_format)
        self._kernel: dict[str, Any] = {"kernel_regularizer": keras.regularizers.L2(setting.l2) if setting.l2 else None}
        self._place: dict[str, Any] = {"data_format": self.data_format}
        self._typed: dict[str, Any] = {"algebra": self.algebra.name, "data_format": self.data_format}

    # Numbers

    def channels(self, number: float) -> int:
        """A number of channels, divided by the factor."""
        return max(1, int(number / self.setting.factor))

    def count(self, x: Tensor) -> int:
        """The channels of one component of a tensor."""
        return int(x.shape[channel_axis(self.data_format, len(x.shape))]) // self.algebra.components

    def size(self, x: Tensor) -> tuple[int, int]:
        """Height and width."""
        return (x.shape[2], x.shape[3]) if self.axis == 1 else (x.shape[1], x.shape[2])

    # Layers with weights

    def conv(
        self,
        x: Tensor,
        filters: int,
        kernel: Size,
        strides: int = 1,
        padding: str = "same",
        bias: bool = True,
        activation: str | None = None,
    ) -> Tensor:
        """A convolution."""
        keywords: dict[str, Any] = {
            "strides": strides, "padding": padding, "use_bias": bias, "activation": activation, **self._kernel
        }  # fmt: skip
        if not self.plain:
            return AlgebraConv2D(filters, kernel, **keywords, **self._typed)(x)
        layer = layers.Conv2D if self.axis == 3 else PortableConv2D
        return layer(filters, kernel, **keywords, **self._place)(x)

    def depthwise(self, x: Tensor, kernel: Size, strides: int = 1, padding: str = "same") -> Tensor:
        """A depthwise convolution without bias."""
        keywords: dict[str, Any] = {"strides": strides, "padding": padding, "use_bias": False}
        if not self.plain:
            return AlgebraDepthwiseConv2D(kernel, **keywords, **self._kernel, **self._typed)(x)
        penalty = self._kernel["kernel_regularizer"]
        return layers.DepthwiseConv2D(kernel, depthwise_regularizer=penalty, **keywords, **self._place)(x)

    def separable(self, x: Tensor, filters: int, kernel: Size, strides: int = 1, padding: str = "same") -> Tensor:
        """A depthwise convolution and one of 1 × 1, without bias."""
        keywords: dict[str, Any] = {"strides": strides, "padding": padding, "use_bias": False}
        if not self.plain:
            return AlgebraSeparableConv2D(filters, kernel, **keywords, **self._kernel, **self._typed)(x)
        penalty = self._kernel["kernel_regularizer"]
        keywords |= {"depthwise_regularizer": penalty, "pointwise_regularizer": penalty}
        return layers.SeparableConv2D(filters, kernel, **keywords, **self._place)(x)

    def dense(self, x: Tensor, units: int, activation: str | None = None) -> Tensor:
        """A dense layer."""
        if self.plain:
            return layers.Dense(units, activation=activation, **self._kernel)(x)
        return AlgebraDense(units, activation=activation, algebra=self.algebra.name, **self._kernel)(x)

    def batch_norm(self, x: Tensor, epsilon: float = 1e-3, momentum: float = 0.99, scale: bool = True) -> Tensor:
        """Batch normalisation of each component, or of all together."""
        keywords: dict[str, Any] = {"epsilon": epsilon, "momentum": momentum, "scale": scale}
        if self.algebra.components > 1 and self.setting.algebra.batch_norm is BatchNorm.WHITENING:
            return WhiteningBatchNormalization(**keywords, **self._typed)(x)
        return layers.BatchNormalization(axis=channel_axis(self.data_format, len(x.shape)), **keywords)(x)

    def prelu(self, x: Tensor) -> Tensor:
        """ReLU with a learned slope for each channel."""
        shared = [2, 3] if self.axis == 1 else [1, 2]
        return layers.PReLU(alpha_initializer=keras.initializers.Constant(0.25), shared_axes=shared)(x)

    # Layers without weights

    def activate(self, x: Tensor, name: str = "relu") -> Tensor:
        """An activation by its Keras name."""
        return layers.Activation(name)(x)

    def leaky_relu(self, x: Tensor, slope: float) -> Tensor:
        """ReLU that lets a part of negative values through."""
        return layers.LeakyReLU(negative_slope=slope)(x)

    def max_pool(self, x: Tensor, size: int, strides: int, padding: str = "valid") -> Tensor:
        """The largest value of each window."""
        return layers.MaxPooling2D(size, strides=strides, padding=padding, **self._place)(x)

    def avg_pool(self, x: Tensor, size: int, strides: int, padding: str = "valid") -> Tensor:
        """The mean of each window."""
        return layers.AveragePooling2D(size, strides=strides, padding=padding, **self._place)(x)

    def global_pool(self, x: Tensor, keepdims: bool = False) -> Tensor:
        """The mean over the picture."""
        return layers.GlobalAveragePooling2D(keepdims=keepdims, **self._place)(x)

    def pad(self, x: Tensor, padding: int | Padding) -> Tensor:
        """Zeros around the picture."""
        return layers.ZeroPadding2D(padding, **self._place)(x)

    def pad_for_stride(self, x: Tensor, kernel: int) -> Tensor:
        """Zeros that centre a window of stride 2 without padding, for odd and even pictures."""
        half = kernel // 2
        height, width = ((half - (1 - size % 2), half) for size in self.size(x))
        return self.pad(x, (height, width))

    def crop(self, x: Tensor, cropping: Padding) -> Tensor:
        """Removes rows and columns."""
        return layers.Cropping2D(cropping, **self._place)(x)

    def add(self, tensors: Sequence[Tensor]) -> Tensor:
        """The sum."""
        return layers.Add()(list(tensors))

    def multiply(self, tensors: Sequence[Tensor]) -> Tensor:
        """The product, component by component: a gate."""
        return layers.Multiply()(list(tensors))

    def scale(self, x: Tensor, factor: float) -> Tensor:
        """The tensor times a number."""
        return layers.Rescaling(factor)(x)

    def concat(self, tensors: Sequence[Tensor]) -> Tensor:
        """The channels of several tensors side by side."""
        if self.algebra.components == 1:
            return layers.Concatenate(axis=self.axis)(list(tensors))
        return AlgebraConcatenate(**self._typed)(list(tensors))

    def flatten(self, x: Tensor) -> Tensor:
        """One vector."""
        if self.algebra.components == 1:
            return layers.Flatten(**self._place)(x)
        return AlgebraFlatten(**self._typed)(x)

    def pad_channels(self, x: Tensor, channels: int) -> Tensor:
        """More channels, filled with zeros."""
        return AlgebraPadChannels(channels, **self._typed)(x)

    def dropout(self, x: Tensor, rate: float) -> Tensor:
        """Dropout, of single numbers or of whole elements of the algebra; none with a rate of 0."""
        if not rate:
            return x
        if self.algebra.components > 1 and self.setting.algebra.shared_dropout:
            return AlgebraDropout(rate, **self._typed)(x)
        return layers.Dropout(rate)(x)

    def drop_path(self, x: Tensor, rate: float) -> Tensor:
        """Drops the whole tensor of some samples."""
        return layers.Dropout(rate, noise_shape=(None, 1, 1, 1))(x) if rate else x

    # In and out

    def enter(self, image: Tensor) -> Tensor:
        """From an NHWC picture to the data format and the algebra of the network."""
        x = Transpose("channels_first")(image) if self.axis == 1 else image
        if self.algebra.components == 1:
            return x
        return IntoAlgebra(self.setting.algebra.way_in.value, **self._typed)(x)

    def leave(self, x: Tensor) -> Tensor:
        """From the algebra to real numbers."""
        if self.algebra.components == 1:
            return x
        return OutOfAlgebra(self.setting.algebra.way_out.value, **self._typed)(x)

    @property
    def real(self) -> "Layers":
        """The same layers outside of the algebra."""
        return Layers(self.setting._replace(framework=Framework.TENSORFLOW))

    @property
    def leaves_before(self) -> bool:
        """Whether the algebra ends before the last layer with weights."""
        return self.algebra.components > 1 and self.setting.algebra.leave is Leave.BEFORE

    def classify(self, x: Tensor, units: int) -> Tensor:
        """The last dense layer, and the way out of the algebra before or after it; only the way out with 0 units."""
        if not units:
            return self.leave(x)
        return self.real.dense(self.leave(x), units) if self.leaves_before else self.leave(self.dense(x, units))

    def classify_map(self, x: Tensor, units: int) -> Tensor:
        """The same with a convolution of 1 × 1, for networks whose classifier looks at each place."""
        if not units:
            return self.leave(x)
        return self.real.conv(self.leave(x), units, 1) if self.leaves_before else self.leave(self.conv(x, units, 1))

    def embed(self, x: Tensor, units: int, epsilon: float) -> Tensor:
        """A dense bottleneck with batch normalisation (without scale), and the way out of the algebra before or after it."""
        own = self.real if self.leaves_before else self
        x = self.leave(x) if self.leaves_before else x
        x = own.batch_norm(own.dense(x, units), epsilon=epsilon, scale=False)
        return x if self.leaves_before else self.leave(x)
