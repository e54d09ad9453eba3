"""Layers that convert between real tensors and elements of an algebra."""

from typing import Any, Literal

import keras
from keras import ops

from scena.errors import ModelError
from scena.model.layers.componentwise import Componentwise
from scena.model.layers.portable import PortableConv2D, channels_of, split_components
from scena.model.layers.windows import Shape, channel_axis

WayIn = Literal["basic", "learned", "joint", "grayscale"]
WayOut = Literal["basic", "concat", "avg_pool", "max_pool", "norm"]
LUMA = (0.299, 0.587, 0.114)
"""The weights of red, green and blue in a grey value (ITU-R BT.601)."""


@keras.saving.register_keras_serializable(package="scena")
class IntoAlgebra(Componentwise):
    """Makes elements of an algebra from a real tensor.

    Args:
        way: "basic" (the input is the first component, the others are zero), "learned" (each other component comes from two small
            convolutions of the input), and for quaternions of an RGB image "joint" (0, R, G, B) and "grayscale" (grey, R, G, B).
        kwargs: see `Componentwise`.
    """

    def __init__(self, way: WayIn = "basic", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if way not in ("basic", "learned", "joint", "grayscale"):
            raise ModelError(
                f"The conversion into an algebra must be basic, learned, joint or grayscale. Received: {way!r}"
            )
        if way in ("joint", "grayscale") and self.algebra.name != "type2":
            raise ModelError(
                f"The conversion {way!r} makes quaternions (type2). Received the algebra {self.algebra.name!r}."
            )
        self.way = way
        self.nets: list[keras.Sequential] = []

    def build(self, input_shape: Shape) -> None:
        channels = channels_of(input_shape, self.data_format)
        if self.way in ("joint", "grayscale") and channels != 3:
            raise ModelError(
                f"The conversion {self.way!r} needs red, green and blue. Received the shape {input_shape}."
            )
        if self.way == "learned":
            self.nets = [self._net(channels, number) for number in range(1, self.algebra.components)]
            for net in self.nets:
                net.build(input_shape)

    def _net(self, channels: int, number: int) -> keras.Sequential:
        """Batch normalisation, ReLU and a convolution, twice, as Trabelsi et al. (2018) make the imaginary part."""
        steps: list[keras.layers.Layer] = []
        for _ in range(2):
            steps += [
                keras.layers.BatchNormalization(axis=channel_axis(self.data_format)),
                keras.layers.ReLU(),
                PortableConv2D(channels, 3, padding="same", data_format=self.data_format),
            ]
        return keras.Sequential(steps, name=f"component_{number}")

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        axis = channel_axis(self.data_format, len(inputs.shape))
        if self.way == "basic":
            others = [ops.zeros_like(inputs)] * (self.algebra.components - 1)
            return ops.concatenate([inputs, *others], axis=axis)
        if self.way == "learned":
            return ops.concatenate([inputs, *(net(inputs, training=training) for net in self.nets)], axis=axis)
        red, green, blue = ops.split(inputs, 3, axis=axis)
        if self.way == "joint":
            return ops.concatenate([ops.zeros_like(red), red, green, blue], axis=axis)
        grey = LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue
        return ops.concatenate([grey, red, green, blue], axis=axis)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """All components of each channel; for joint and grayscale the colours are the components of one channel."""
        shape = list(input_shape)
        axis = channel_axis(self.data_format, len(shape))
        channels = 1 if self.way in ("joint", "grayscale") else channels_of(input_shape, self.data_format)
        shape[axis] = channels * self.algebra.components
        return tuple(shape)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "way": self.way}


@keras.saving.register_keras_serializable(package="scena")
class OutOfAlgebra(Componentwise):
    """Makes a real tensor from elements of an algebra.

    Args:
        way: "basic" (the first component), "concat" (all components side by side), "avg_pool" or "max_pool" (over the components),
            "norm" (the root of the sum of squares).
        kwargs: see `Componentwise`.
    """

    def __init__(self, way: WayOut = "basic", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if way not in ("basic", "concat", "avg_pool", "max_pool", "norm"):
            raise ModelError(
                f"The conversion out of an algebra must be basic, concat, avg_pool, max_pool or norm. Received: {way!r}"
            )
        self.way = way

    def call(self, inputs: Any) -> Any:
        if self.way == "concat":
            return ops.convert_to_tensor(inputs)
        stacked, axis = split_components(inputs, self.algebra.components, self.data_format)
        if self.way == "basic":
            return ops.take(stacked, 0, axis=axis)
        if self.way == "avg_pool":
            return ops.mean(stacked, axis=axis)
        if self.way == "max_pool":
            return ops.max(stacked, axis=axis)
        squares = ops.sum(ops.square(stacked), axis=axis)
        positive = ops.greater(squares, 0)  # a root has no gradient at zero; there it is zero here
        return ops.where(positive, ops.sqrt(ops.where(positive, squares, ops.ones_like(squares))), squares)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        if self.way == "concat":
            return input_shape
        shape = list(input_shape)
        channels = channels_of(input_shape, self.data_format, self.algebra.components)
        shape[channel_axis(self.data_format, len(shape))] = channels
        return tuple(shape)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "way": self.way}
