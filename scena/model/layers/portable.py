"""Data formats and components: reshaping, transposing, and convolutions with channels first on any device.

TensorFlow has no convolutions with channels first on a CPU, so they are transposed there.
"""

from functools import cache
from typing import Any

import keras
from keras import ops

from scena.errors import ModelError
from scena.model.layers.windows import Shape, channel_axis


def channels_of(shape: Shape, data_format: str, components: int = 1) -> int:
    """The number of channels of each component.

    Raises:
        ModelError: the channels are unknown, or not a multiple of the number of components.
    """
    channels = shape[channel_axis(data_format, len(shape))]
    if channels is None or channels % components:
        raise ModelError(
            f"A tensor with {components} components needs a known number of channels that is a multiple of {components}. "
            f"Received the shape {shape}; bring it into the algebra with IntoAlgebra first."
        )
    return channels // components


def split_components(tensor: Any, components: int, data_format: str) -> tuple[Any, int]:
    """The tensor with an axis of components before that of the channels, and the index of the new axis."""
    shape = tuple(tensor.shape)
    axis = channel_axis(data_format, len(shape))
    channels = channels_of(shape, data_format, components)
    return ops.reshape(tensor, (*_sizes(tensor, shape[:axis]), components, channels, *shape[axis + 1 :])), axis


def join_components(tensor: Any, axis: int) -> Any:
    """The inverse: joins the axis of components and the one after it."""
    shape = tuple(tensor.shape)
    return ops.reshape(tensor, (*_sizes(tensor, shape[:axis]), shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _sizes(tensor: Any, shape: Shape) -> list[Any]:
    """Sizes for a reshape; unknown ones are taken from the tensor, the first is inferred."""
    return [-1] + [ops.shape(tensor)[at] if size is None else size for at, size in enumerate(shape) if at]


def to_channels_last(tensor: Any) -> Any:
    """NCHW to NHWC."""
    return ops.transpose(tensor, (0, 2, 3, 1))


def to_channels_first(tensor: Any) -> Any:
    """NHWC to NCHW."""
    return ops.transpose(tensor, (0, 3, 1, 2))


def must_transpose(data_format: str) -> bool:
    """Whether convolutions have to run in NHWC: TensorFlow has no others on a CPU."""
    return data_format == "channels_first" and keras.backend.backend() == "tensorflow" and not _has_accelerator()


@cache
def _has_accelerator() -> bool:
    return any(not device.lower().startswith("cpu") for device in keras.distribution.list_devices())


def convolve(
    inputs: Any,
    kernel: Any,
    strides: tuple[int, int],
    padding: str,
    data_format: str,
    dilation_rate: tuple[int, int] = (1, 1),
) -> Any:
    """A convolution in any data format on any device."""
    transpose = must_transpose(data_format)
    outputs = ops.conv(
        to_channels_last(inputs) if transpose else inputs,
        kernel,
        strides=strides,
        padding=padding,
        data_format="channels_last" if transpose else data_format,
        dilation_rate=dilation_rate,
    )
    return to_channels_first(outputs) if transpose else outputs


def add_bias(outputs: Any, bias: Any, data_format: str) -> Any:
    """Adds one value to each channel.

    With the bias on the right Keras 3.15 adds it along the width of an NCHW image if that happens to equal the number of channels.
    """
    if data_format == "channels_last" or len(outputs.shape) == 2:
        return ops.add(outputs, bias)
    return ops.add(ops.reshape(bias, (1, -1, 1, 1)), outputs)


@keras.saving.register_keras_serializable(package="scena")
class PortableConv2D(keras.layers.Conv2D):
    """Keras' convolution, also with channels first on a CPU. Groups are not supported."""

    def call(self, inputs: Any) -> Any:
        outputs = self.convolution_op(inputs, self.kernel)
        if self.use_bias:
            outputs = add_bias(outputs, self.bias, self.data_format)
        return outputs if self.activation is None else self.activation(outputs)

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        return convolve(inputs, kernel, self.strides, self.padding, self.data_format, self.dilation_rate)


@keras.saving.register_keras_serializable(package="scena")
class Transpose(keras.layers.Layer):
    """Converts an image from one data format to the other.

    Args:
        to: the data format of the output.
    """

    def __init__(self, to: str = "channels_first", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.to = to

    def call(self, inputs: Any) -> Any:
        return to_channels_first(inputs) if self.to == "channels_first" else to_channels_last(inputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        order = (0, 3, 1, 2) if self.to == "channels_first" else (0, 2, 3, 1)
        return tuple(input_shape[axis] for axis in order)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "to": self.to}
