"""Where the components are in a tensor: looking at them as an axis of their own, and turning data formats."""

from functools import cache
from typing import Any

import keras
from keras import ops

from scena.model.errors import ModelError
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
    """The tensor with an axis for the components before the one of the channels, and where that axis is."""
    shape = tuple(tensor.shape)
    axis = channel_axis(data_format, len(shape))
    channels = channels_of(shape, data_format, components)
    return ops.reshape(tensor, (*_sizes(tensor, shape[:axis]), components, channels, *shape[axis + 1 :])), axis


def join_components(tensor: Any, axis: int) -> Any:
    """The other way: the axis of the components and the one after it become one."""
    shape = tuple(tensor.shape)
    return ops.reshape(tensor, (*_sizes(tensor, shape[:axis]), shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _sizes(tensor: Any, shape: Shape) -> list[Any]:
    """Sizes for a reshape; those that are not known before the call are taken from the tensor, but the first can be inferred."""
    return [-1] + [ops.shape(tensor)[at] if size is None else size for at, size in enumerate(shape) if at]


def to_channels_last(tensor: Any) -> Any:
    """NCHW to NHWC."""
    return ops.transpose(tensor, (0, 2, 3, 1))


def to_channels_first(tensor: Any) -> Any:
    """NHWC to NCHW."""
    return ops.transpose(tensor, (0, 3, 1, 2))


def must_transpose(data_format: str) -> bool:
    """Whether convolutions have to run in NHWC all the same: TensorFlow has no others on a CPU."""
    return data_format == "channels_first" and keras.backend.backend() == "tensorflow" and not _has_accelerator()


@cache
def _has_accelerator() -> bool:
    return any(not device.lower().startswith("cpu") for device in keras.distribution.list_devices())
