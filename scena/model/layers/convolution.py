"""Convolutions over an algebra: one real convolution with a block-structured kernel."""

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

    def positions(self, input_shape: Shape) -> int:
        """How many positions the window takes."""
        height, width = self.output_size(input_shape)
        return (height or 1) * (width or 1)

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

    def multiply_adds(self, input_shape: Shape) -> int:
        """The multiplications of one sample."""
        height, width = self.kernel_size
        weights = height * width * self.channels_of(input_shape) * self.filters
        return self.positions(input_shape) * weights * self.algebra.components**2


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

    def multiply_adds(self, input_shape: Shape) -> int:
        """The multiplications of one sample: each input position meets the whole kernel."""
        height, width = spatial(input_shape, self.data_format)
        weights = self.kernel_size[0] * self.kernel_size[1] * self.channels_of(input_shape) * self.filters
        return (height or 1) * (width or 1) * weights * self.algebra.components**2
