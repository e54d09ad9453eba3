"""The layers of the zoo in Keras: its own for the framework `tensorflow`, those of an algebra for the others."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import layers

from scena.model.layers.algebra_conversion import IntoAlgebra, OutOfAlgebra
from scena.model.layers.componentwise import AlgebraConcatenate, AlgebraDropout, AlgebraFlatten, AlgebraPadChannels
from scena.model.layers.convolution import AlgebraConv2D, AlgebraDepthwiseConv2D, AlgebraSeparableConv2D
from scena.model.layers.linear import AlgebraDense
from scena.model.layers.normalization import WhiteningBatchNormalization
from scena.model.layers.portable import PortableConv2D, Transpose
from scena.model.layers.windows import channel_axis
from scena.model.zoo.namespace import Layers, Padding, Setting, Size, Tensor
from scena.model.zoo.params import BatchNorm, Framework


class KerasLayers(Layers):
    """Creates and applies a Keras layer with each method; `Layers` documents them."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.plain = setting.framework is Framework.TENSORFLOW
        self._kernel: dict[str, Any] = {"kernel_regularizer": keras.regularizers.L2(setting.l2) if setting.l2 else None}
        self._place: dict[str, Any] = {"data_format": self.data_format}
        self._typed: dict[str, Any] = {"algebra": self.algebra.name, "data_format": self.data_format}

    # Layers with weights

    def conv(self, x: Tensor, filters: int, kernel: Size, strides: int = 1, padding: str = "same", bias: bool = True,
             activation: str | None = None, name: str | None = None) -> Tensor:  # fmt: skip
        keywords: dict[str, Any] = {
            "strides": strides, "padding": padding, "use_bias": bias, "activation": activation, "name": name, **self._kernel
        }  # fmt: skip
        if not self.plain:
            return AlgebraConv2D(filters, kernel, **keywords, **self._typed)(x)
        layer = layers.Conv2D if self.axis == 3 else PortableConv2D
        return layer(filters, kernel, **keywords, **self._place)(x)

    def depthwise(self, x: Tensor, kernel: int, strides: int = 1, padding: str = "same") -> Tensor:
        keywords: dict[str, Any] = {"strides": strides, "padding": padding, "use_bias": False}
        if not self.plain:
            return AlgebraDepthwiseConv2D(kernel, **keywords, **self._kernel, **self._typed)(x)
        penalty = self._kernel["kernel_regularizer"]
        return layers.DepthwiseConv2D(kernel, depthwise_regularizer=penalty, **keywords, **self._place)(x)

    def separable(self, x: Tensor, filters: int, kernel: int, strides: int = 1, padding: str = "same") -> Tensor:
        keywords: dict[str, Any] = {"strides": strides, "padding": padding, "use_bias": False}
        if not self.plain:
            return AlgebraSeparableConv2D(filters, kernel, **keywords, **self._kernel, **self._typed)(x)
        penalty = self._kernel["kernel_regularizer"]
        keywords |= {"depthwise_regularizer": penalty, "pointwise_regularizer": penalty}
        return layers.SeparableConv2D(filters, kernel, **keywords, **self._place)(x)

    def dense(
        self, x: Tensor, units: int, activation: str | None = None, name: str | None = None, bias: bool = True
    ) -> Tensor:
        keywords: dict[str, Any] = {"activation": activation, "use_bias": bias, "name": name, **self._kernel}
        if self.plain:
            return layers.Dense(units, **keywords)(x)
        return AlgebraDense(units, algebra=self.algebra.name, **keywords)(x)

    def batch_norm(self, x: Tensor, epsilon: float = 1e-3, momentum: float = 0.99, scale: bool = True) -> Tensor:
        keywords: dict[str, Any] = {"epsilon": epsilon, "momentum": momentum, "scale": scale}
        if self.components > 1 and self.setting.algebra.batch_norm is BatchNorm.WHITENING:
            return WhiteningBatchNormalization(**keywords, **self._typed)(x)
        return layers.BatchNormalization(axis=channel_axis(self.data_format, len(x.shape)), **keywords)(x)

    def prelu(self, x: Tensor) -> Tensor:
        shared = [2, 3] if self.axis == 1 else [1, 2]
        return layers.PReLU(alpha_initializer=keras.initializers.Constant(0.25), shared_axes=shared)(x)

    # Layers without weights

    def activate(self, x: Tensor, name: str = "relu") -> Tensor:
        return layers.Activation(name)(x)

    def leaky_relu(self, x: Tensor, slope: float) -> Tensor:
        return layers.LeakyReLU(negative_slope=slope)(x)

    def max_pool(self, x: Tensor, size: int, strides: int, padding: str = "valid") -> Tensor:
        return layers.MaxPooling2D(size, strides=strides, padding=padding, **self._place)(x)

    def avg_pool(self, x: Tensor, size: int, strides: int, padding: str = "valid") -> Tensor:
        return layers.AveragePooling2D(size, strides=strides, padding=padding, **self._place)(x)

    def global_pool(self, x: Tensor, keepdims: bool = False) -> Tensor:
        return layers.GlobalAveragePooling2D(keepdims=keepdims, **self._place)(x)

    def pad(self, x: Tensor, padding: int | Padding) -> Tensor:
        return layers.ZeroPadding2D(padding, **self._place)(x)

    def crop(self, x: Tensor, cropping: Padding) -> Tensor:
        return layers.Cropping2D(cropping, **self._place)(x)

    def add(self, tensors: Sequence[Tensor]) -> Tensor:
        return layers.Add()(list(tensors))

    def multiply(self, tensors: Sequence[Tensor]) -> Tensor:
        return layers.Multiply()(list(tensors))

    def scale(self, x: Tensor, factor: float) -> Tensor:
        return layers.Rescaling(factor)(x)

    def concat(self, tensors: Sequence[Tensor]) -> Tensor:
        if self.components == 1:
            return layers.Concatenate(axis=self.axis)(list(tensors))
        return AlgebraConcatenate(**self._typed)(list(tensors))

    def flatten(self, x: Tensor) -> Tensor:
        if self.components == 1:
            return layers.Flatten(**self._place)(x)
        return AlgebraFlatten(**self._typed)(x)

    def pad_channels(self, x: Tensor, channels: int) -> Tensor:
        return AlgebraPadChannels(channels, **self._typed)(x)

    def dropout(self, x: Tensor, rate: float) -> Tensor:
        if not rate:
            return x
        if self.components > 1 and self.setting.algebra.shared_dropout:
            return AlgebraDropout(rate, **self._typed)(x)
        return layers.Dropout(rate)(x)

    def drop_path(self, x: Tensor, rate: float) -> Tensor:
        return layers.Dropout(rate, noise_shape=(None, 1, 1, 1))(x) if rate else x

    # In and out

    def enter(self, image: Tensor) -> Tensor:
        x = Transpose("channels_first")(image) if self.axis == 1 else image
        if self.components == 1:
            return x
        return IntoAlgebra(self.setting.algebra.way_in.value, **self._typed)(x)

    def leave(self, x: Tensor) -> Tensor:
        if self.components == 1:
            return x
        return OutOfAlgebra(self.setting.algebra.way_out.value, **self._typed)(x)

    def as_nhwc(self, x: Tensor) -> Tensor:
        return Transpose("channels_last")(x) if self.axis == 1 else x
