"""Depthwise and separable convolutions over an algebra."""

from typing import Any

import keras
from keras import ops

from scena.model.layers.convolution import AlgebraConv2D, AlgebraFilters, AlgebraWindow, Size
from scena.model.layers.windows import Shape


@keras.saving.register_keras_serializable(package="scena")
class AlgebraDepthwiseConv2D(AlgebraWindow):
    """Each channel of the algebra is multiplied with windows of its own.

    One real depthwise convolution makes all products of components; those of the same output component are then added.

    Args:
        kernel_size, strides, padding, dilation_rate: see `AlgebraWindow`.
        depth_multiplier: output channels for each input channel.
        kwargs: see `AlgebraLinear`.
    """

    depthwise = True

    def __init__(
        self, kernel_size: Size, strides: Size = 1, padding: str = "valid", depth_multiplier: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(kernel_size, strides, padding, **kwargs)
        self.depth_multiplier = depth_multiplier

    def build(self, input_shape: Shape) -> None:
        channels = self.channels_of(input_shape)
        self.add_kernel((*self.kernel_size, channels, self.depth_multiplier), channels * self.depth_multiplier)

    def call(self, inputs: Any) -> Any:
        products = ops.depthwise_conv(
            inputs,
            self.block_kernel(),
            strides=self.strides,
            padding=self.padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )
        return self.finish(self._add_inputs(products))

    def _add_inputs(self, products: Any) -> Any:
        """The products come as (input component, channel, output component, multiple)."""
        components, multiples = self.algebra.components, self.depth_multiplier
        if components == 1:
            return products
        channels = self.kernel.shape[-2]
        parts = (components, channels, components, multiples)
        if self.data_format == "channels_first":
            size = ops.shape(products)[2:]
            products = ops.sum(ops.reshape(products, (-1, *parts, *size)), axis=1)
            products = ops.transpose(products, (0, 2, 1, 3, 4, 5))
            return ops.reshape(products, (-1, components * channels * multiples, *size))
        size = ops.shape(products)[1:3]
        products = ops.sum(ops.reshape(products, (-1, *size, *parts)), axis=3)
        products = ops.transpose(products, (0, 1, 2, 4, 3, 5))
        return ops.reshape(products, (-1, *size, components * channels * multiples))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self.output_shape(input_shape, self.channels_of(input_shape) * self.depth_multiplier)

    def multiply_adds(self, input_shape: Shape) -> int:
        """The multiplications of one sample."""
        weights = self.kernel_size[0] * self.kernel_size[1] * self.channels_of(input_shape) * self.depth_multiplier
        return self.positions(input_shape) * weights * self.algebra.components**2

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "depth_multiplier": self.depth_multiplier}


@keras.saving.register_keras_serializable(package="scena")
class AlgebraSeparableConv2D(AlgebraFilters):
    """A depthwise convolution followed by one of 1 × 1.

    Args:
        filters: output channels of one component.
        kernel_size, strides, padding, dilation_rate: of the depthwise convolution, see `AlgebraWindow`.
        kwargs: see `AlgebraLinear`; initialiser and regulariser are used for both kernels, bias and activation belong to the second.
    """

    def __init__(
        self, filters: int, kernel_size: Size, strides: Size = 1, padding: str = "valid", **kwargs: Any
    ) -> None:
        super().__init__(filters, kernel_size, strides, padding, **kwargs)
        shared = {
            "algebra": self.algebra.name,
            "kernel_regularizer": self.kernel_regularizer,
            "data_format": self.data_format,
            "dtype": self.dtype_policy,
        }
        given = kwargs.get("kernel_initializer")  # each of the two has a default of its own
        self.spread = AlgebraDepthwiseConv2D(
            self.kernel_size,
            self.strides,
            self.padding,
            dilation_rate=self.dilation_rate,
            use_bias=False,
            kernel_initializer=given,
            name="spread",
            **shared,
        )
        self.mix = AlgebraConv2D(
            filters,
            1,
            use_bias=self.use_bias,
            activation=self.activation,
            kernel_initializer=given,
            bias_initializer=self.bias_initializer,
            bias_regularizer=self.bias_regularizer,
            name="mix",
            **shared,
        )
        self._given_initializer = given

    def build(self, input_shape: Shape) -> None:
        self.spread.build(input_shape)
        self.mix.build(self.spread.compute_output_shape(input_shape))

    def call(self, inputs: Any) -> Any:
        return self.mix(self.spread(inputs))

    def multiply_adds(self, input_shape: Shape) -> int:
        """The multiplications of one sample, in both."""
        middle = self.spread.compute_output_shape(input_shape)
        return self.spread.multiply_adds(input_shape) + self.mix.multiply_adds(middle)

    def get_config(self) -> dict[str, Any]:
        given = self._given_initializer
        return {
            **super().get_config(),
            "kernel_initializer": given and keras.initializers.serialize(keras.initializers.get(given)),
        }
