"""Convolutions over an algebra: each is one real convolution with a block-structured kernel."""

from typing import Any

import keras
from keras import ops

from scena.model.layers.linear import AlgebraLinear
from scena.model.layers.portable import convolve, must_transpose, to_channels_first, to_channels_last
from scena.model.layers.windows import Shape, check_padding, pair, slide, slide_back, spatial, with_spatial

Size = int | tuple[int, int] | list[int]


class AlgebraWindow(AlgebraLinear):
    """Base of the layers that slide a window over an image.

    Args:
        kernel_size: height and width of the window.
        strides: steps of the window.
        padding: "same" or "valid".
        dilation_rate: distance between the points of the window.
        kwargs: see `AlgebraLinear`.
    """

    def __init__(
        self, kernel_size: Size, strides: Size = 1, padding: str = "valid", dilation_rate: Size = 1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.kernel_size = pair(kernel_size, "kernel_size")
        self.strides = pair(strides, "strides")
        self.padding = check_padding(padding)
        self.dilation_rate = pair(dilation_rate, "dilation_rate")

    def output_size(self, input_shape: Shape) -> tuple[int | None, ...]:
        """Height and width of the output."""
        sizes = spatial(input_shape, self.data_format)
        windows = zip(sizes, self.kernel_size, self.strides, self.dilation_rate, strict=True)
        return tuple(slide(size, window, stride, self.padding, d) for size, window, stride, d in windows)

    def output_shape(self, input_shape: Shape, channels: int) -> Shape:
        """The shape of the output with that many channels in a component."""
        channels *= self.algebra.components
        return with_spatial(input_shape[0], self.output_size(input_shape), channels, self.data_format)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "padding": self.padding,
            "dilation_rate": self.dilation_rate,
        }


class AlgebraFilters(AlgebraWindow):
    """Base of the convolutions with a number of filters.

    Args:
        filters: output channels of one component.
        kernel_size, strides, padding, dilation_rate: see `AlgebraWindow`.
        kwargs: see `AlgebraLinear`.
    """

    def __init__(
        self, filters: int, kernel_size: Size, strides: Size = 1, padding: str = "valid", **kwargs: Any
    ) -> None:
        super().__init__(kernel_size, strides, padding, **kwargs)
        self.filters = filters

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self.output_shape(input_shape, self.filters)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "filters": self.filters}


@keras.saving.register_keras_serializable(package="scena")
class AlgebraConv2D(AlgebraFilters):
    """A convolution over an algebra, with one call of the real one; see `AlgebraFilters`."""

    def build(self, input_shape: Shape) -> None:
        self.add_kernel((*self.kernel_size, self.channels_of(input_shape), self.filters), self.filters)

    def call(self, inputs: Any) -> Any:
        kernel = self.block_kernel()
        outputs = convolve(inputs, kernel, self.strides, self.padding, self.data_format, self.dilation_rate)
        return self.finish(outputs)


@keras.saving.register_keras_serializable(package="scena")
class AlgebraConv2DTranspose(AlgebraFilters):
    """A transposed convolution over an algebra, with one call of the real one; see `AlgebraFilters`. There is no dilation."""

    def build(self, input_shape: Shape) -> None:
        """Adds the weights; the kernel has its outputs before its inputs, as in Keras."""
        self.add_kernel((*self.kernel_size, self.filters, self.channels_of(input_shape)), self.filters)

    def call(self, inputs: Any) -> Any:
        transpose = must_transpose(self.data_format)
        outputs = ops.conv_transpose(
            to_channels_last(inputs) if transpose else inputs,
            self.block_kernel(transposed=True),
            strides=self.strides,
            padding=self.padding,
            data_format="channels_last" if transpose else self.data_format,
        )
        return self.finish(to_channels_first(outputs) if transpose else outputs)

    def output_size(self, input_shape: Shape) -> tuple[int | None, ...]:
        windows = zip(spatial(input_shape, self.data_format), self.kernel_size, self.strides, strict=True)
        return tuple(slide_back(size, window, stride, self.padding) for size, window, stride in windows)


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

    def get_config(self) -> dict[str, Any]:
        given = self._given_initializer
        return {
            **super().get_config(),
            "kernel_initializer": given and keras.initializers.serialize(keras.initializers.get(given)),
        }
