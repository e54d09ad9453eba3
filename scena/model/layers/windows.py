"""Shapes of images, and the output sizes of sliding windows. No Keras here."""

from scena.errors import ModelError

Pair = tuple[int, int]
Shape = tuple[int | None, ...]


def channel_axis(data_format: str, rank: int = 4) -> int:
    """The axis of the channels; a tensor without height and width has them last."""
    return 1 if data_format == "channels_first" and rank > 2 else rank - 1


def pair(value: int | list[int] | tuple[int, ...], name: str) -> Pair:
    """Height and width from one number or two.

    Raises:
        ModelError: it is something else.
    """
    both = (value, value) if isinstance(value, int) else tuple(value)
    if len(both) != 2 or min(both) < 1:
        raise ModelError(f"{name} must be one number or two, each at least 1. Received: {value!r}")
    return both[0], both[1]


def check_padding(padding: str) -> str:
    """Checks the padding and returns it."""
    if padding not in ("same", "valid"):
        raise ModelError(f"padding must be 'same' or 'valid'. Received: {padding!r}")
    return padding


def spatial(shape: Shape, data_format: str) -> tuple[int | None, int | None]:
    """Height and width of an image of this shape."""
    return (shape[2], shape[3]) if data_format == "channels_first" else (shape[1], shape[2])


def with_spatial(batch: int | None, size: tuple[int | None, ...], channels: int, data_format: str) -> Shape:
    """The shape of an image with this height, width and number of channels."""
    return (batch, channels, *size) if data_format == "channels_first" else (batch, *size, channels)


def slide(size: int | None, window: int, stride: int, padding: str, dilation: int = 1) -> int | None:
    """The number of positions of a window."""
    if size is None:
        return None
    if padding == "same":
        return -(-size // stride)
    return (size - dilation * (window - 1) - 1) // stride + 1


def slide_back(size: int | None, window: int, stride: int, padding: str) -> int | None:
    """The size after a transposed convolution."""
    if size is None:
        return None
    return size * stride if padding == "same" else size * stride + max(window - stride, 0)
