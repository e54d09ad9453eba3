"""Layers that treat each component alike, where Keras' own do not work on stacked components."""

from typing import Any

import keras
from keras import ops

from scena.errors import ModelError
from scena.model.layers.algebra import get_algebra
from scena.model.layers.portable import channels_of, join_components, split_components
from scena.model.layers.windows import Shape, channel_axis


class Componentwise(keras.layers.Layer):
    """Base of the layers that know the components, but have no weights.

    Args:
        algebra: "real", "type1", "type2" or "type3".
        data_format: "channels_last" or "channels_first".
    """

    def __init__(self, algebra: str = "type2", data_format: str = "channels_last", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.algebra = get_algebra(algebra)
        self.data_format = data_format

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "algebra": self.algebra.name, "data_format": self.data_format}


@keras.saving.register_keras_serializable(package="scena")
class AlgebraConcatenate(Componentwise):
    """Concatenates the channels of several tensors, component by component."""

    def call(self, inputs: list[Any]) -> Any:
        split = [split_components(tensor, self.algebra.components, self.data_format) for tensor in inputs]
        axis = split[0][1]
        return join_components(ops.concatenate([tensor for tensor, _ in split], axis=axis + 1), axis)

    def compute_output_shape(self, input_shape: list[Shape]) -> Shape:
        first = list(input_shape[0])
        axis = channel_axis(self.data_format, len(first))
        counts = [channels_of(shape, self.data_format, self.algebra.components) for shape in input_shape]
        first[axis] = sum(counts) * self.algebra.components
        return tuple(first)


@keras.saving.register_keras_serializable(package="scena")
class AlgebraFlatten(Componentwise):
    """Flattens each component of an image to a vector, in the order of Keras' Flatten."""

    def call(self, inputs: Any) -> Any:
        """Component by component: height, width, channel."""
        tensor, axis = split_components(inputs, self.algebra.components, self.data_format)
        order = (0, 3, 1, 2, 4) if axis == 3 else (0, 1, 3, 4, 2)
        return ops.reshape(ops.transpose(tensor, order), (-1, self._features(tuple(inputs.shape))))

    def _features(self, shape: Shape) -> int:
        features = 1
        for size in shape[1:]:
            if size is None:
                raise ModelError(f"AlgebraFlatten needs an image of known size. Received the shape {shape}.")
            features *= size
        return features

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (input_shape[0], self._features(input_shape))


@keras.saving.register_keras_serializable(package="scena")
class AlgebraPadChannels(Componentwise):
    """Adds channels of zeros to each component, half of them (rounded down) in front.

    Args:
        channels: the channels of one component in the output.
        kwargs: see `Componentwise`.
    """

    def __init__(self, channels: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.channels = channels

    def call(self, inputs: Any) -> Any:
        tensor, axis = split_components(inputs, self.algebra.components, self.data_format)
        missing = self.channels - tensor.shape[axis + 1]
        padding = [(0, 0)] * len(tensor.shape)
        padding[axis + 1] = (missing // 2, missing - missing // 2)
        return join_components(ops.pad(tensor, padding), axis)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        shape = list(input_shape)
        shape[channel_axis(self.data_format, len(shape))] = self.channels * self.algebra.components
        return tuple(shape)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "channels": self.channels}


@keras.saving.register_keras_serializable(package="scena")
class AlgebraDropout(Componentwise):
    """Drops whole elements: all components of a channel at a position share one mask. (Keras' Dropout drops them one by one.)

    Args:
        rate: the share that is dropped; the rest is scaled up.
        seed: makes the masks repeatable.
        kwargs: see `Componentwise`.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ModelError(f"The dropout rate must be at least 0 and below 1. Received: {rate}")
        self.rate = rate
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training or self.rate == 0:
            return inputs
        axis = channel_axis(self.data_format, len(inputs.shape))
        one = ops.split(inputs, self.algebra.components, axis=axis)[0]
        mask = keras.random.dropout(ops.ones_like(one), self.rate, seed=self.seed_generator)
        return inputs * ops.concatenate([mask] * self.algebra.components, axis=axis)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
