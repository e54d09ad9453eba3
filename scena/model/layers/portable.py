"""Real convolutions that run with channels first on a CPU too, where TensorFlow has none: they are transposed there."""

from typing import Any

import keras
from keras import ops

from scena.model.layers.channels import must_transpose, to_channels_first, to_channels_last
from scena.model.layers.windows import Shape


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

    With the bias on the right Keras 3.15 adds it along the width of an NCHW picture if that happens to equal the number of channels.
    """
    if data_format == "channels_last" or len(outputs.shape) == 2:
        return ops.add(outputs, bias)
    return ops.add(ops.reshape(bias, (1, -1, 1, 1)), outputs)


@keras.saving.register_keras_serializable(package="scena")
class PortableConv2D(keras.layers.Conv2D):
    """Keras' convolution, also with channels first on a CPU. Groups are not supported."""

    def call(self, inputs: Any) -> Any:
        """Convolution, bias and activation."""
        outputs = self.convolution_op(inputs, self.kernel)
        if self.use_bias:
            outputs = add_bias(outputs, self.bias, self.data_format)
        return outputs if self.activation is None else self.activation(outputs)

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        """The convolution itself, without bias and activation."""
        return convolve(inputs, kernel, self.strides, self.padding, self.data_format, self.dilation_rate)


@keras.saving.register_keras_serializable(package="scena")
class Transpose(keras.layers.Layer):
    """Brings a picture from one data format into the other.

    Args:
        to: the data format of the output.
    """

    def __init__(self, to: str = "channels_first", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.to = to

    def call(self, inputs: Any) -> Any:
        """The same picture with its axes in another order."""
        return to_channels_first(inputs) if self.to == "channels_first" else to_channels_last(inputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The axes in their new order."""
        order = (0, 3, 1, 2) if self.to == "channels_first" else (0, 2, 3, 1)
        return tuple(input_shape[axis] for axis in order)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the layer."""
        return {**super().get_config(), "to": self.to}
