"""The functions that operations consist of, for numpy: images are arrays (height, width, channels) of uint8 or float32."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scena.errors import DataError

Array = np.ndarray[Any, Any]

real, cos, sin, sqrt, exp = float, math.cos, math.sin, math.sqrt, math.exp
minimum, maximum = min, max


def integer(value: float) -> int:
    """The whole part of a positive number."""
    return int(value)


def single(value: Any) -> Any:
    """A number or array with 32 bits."""
    return np.float32(value) if isinstance(value, float) else np.asarray(value, np.float32)


def size(image: Array) -> tuple[int, int]:
    return image.shape[0], image.shape[1]


def channels(image: Array) -> int:
    return int(image.shape[-1])


def to_float(image: Array) -> Array:
    return image.astype(np.float32, copy=False)


def choose(condition: bool, yes: Callable[[], Array], no: Callable[[], Array]) -> Array:
    """One of two results."""
    return yes() if condition else no()


def check_fits(height: int, width: int, rows: int, columns: int) -> None:
    """Raises if a part is larger than the image."""
    if rows > height or columns > width:
        size = f"{rows} × {columns} from an image of {height} × {width}"
        raise DataError(f"RandomCrop cannot crop {size}: put Pad or Resize before it.")


def crop(image: Array, top: int, left: int, rows: int, columns: int) -> Array:
    return image[top : top + rows, left : left + columns]


def flip_columns(image: Array) -> Array:
    """Mirrored left to right."""
    return image[:, ::-1]


def flip_rows(image: Array) -> Array:
    """Mirrored top to bottom."""
    return image[::-1]


def quarter_turns(image: Array, turns: int) -> Array:
    """Rotated counter-clockwise."""
    return np.rot90(image, turns)


def clip(image: Array, low: float, high: float) -> Array:
    return np.clip(image, np.float32(low), np.float32(high))


def scale_channels(image: Array, factor: Array, offset: Array) -> Array:
    """Each channel times its factor, plus its offset."""
    if channels(image) != len(factor):
        return to_float(image) * factor + offset
    rows = image.reshape(len(image), -1) * _across(factor, image)
    rows += _across(offset, image)
    return rows.reshape(image.shape)


def channel_means(image: Array) -> Array:
    return image.mean(axis=0, dtype=np.float64).mean(axis=0).astype(np.float32)


def mix_channels(image: Array, matrix: Array, offset: Array) -> Array:
    """Each new channel is a weighted sum of the old ones, plus an offset."""
    rows = (image.reshape(-1, 3) @ matrix.T).reshape(len(image), -1)
    rows += _across(offset, image)
    return rows.reshape(image.shape)


def mix_vector(vector: Array, matrix: Array) -> Array:
    """The same for one pixel."""
    return matrix @ vector


def pad(image: Array, rows: int, columns: int, mode: str, value: float) -> Array:
    """With a border of rows and columns on each side."""
    width = ((rows, rows), (columns, columns), (0, 0))
    if mode == "constant":
        return np.pad(image, width, constant_values=image.dtype.type(value))
    return np.pad(image, width, mode=mode)  # type: ignore[call-overload]


def paint(image: Array, top: int, left: int, rows: int, columns: int, value: float) -> Array:
    """With a box of one value."""
    painted = image.copy()
    painted[top : top + rows, left : left + columns] = image.dtype.type(value)
    return painted


def resize(image: Array, target: Sequence[int], interpolation: str) -> Array:
    """Scaled as by `tf.image.resize`, without antialiasing."""
    rows, columns = target
    if interpolation == "nearest":
        return image[_nearest(rows, image.shape[0])][:, _nearest(columns, image.shape[1])]
    if (rows, columns) == image.shape[:2]:
        return to_float(image)
    low, high, share = _between(rows, image.shape[0])
    upper = image[low].astype(np.float32)
    lines = image[high].astype(np.float32)
    lines -= upper
    lines *= share[:, None, None]
    lines += upper
    low, high, share = _between(columns, image.shape[1])
    left = lines[:, low]
    result = lines[:, high]
    result -= left
    result *= share[None, :, None]
    result += left
    return result


def _nearest(wanted: int, given: int) -> Array:
    scale = np.float32(given) / np.float32(wanted)
    positions = np.floor((np.arange(wanted, dtype=np.float32) + np.float32(0.5)) * scale)
    return np.minimum(positions.astype(np.int64), given - 1)


def _between(wanted: int, given: int) -> tuple[Array, Array, Array]:
    """The two pixels next to each new one, and how near it is to the second."""
    scale = np.float32(given) / np.float32(wanted)
    positions = (np.arange(wanted, dtype=np.float32) + np.float32(0.5)) * scale - np.float32(0.5)
    floor = np.floor(positions)
    low = np.maximum(floor.astype(np.int64), 0)
    high = np.minimum(np.ceil(positions).astype(np.int64), given - 1)
    return low, high, positions - floor


def affine(image: Array, matrix: Sequence[float], interpolation: str, fill: float) -> Array:
    """Each new pixel (x, y) is taken from (m0 x + m1 y + m2, m3 x + m4 y + m5)."""
    height, width, count = image.shape
    m = [np.float32(value) for value in matrix]
    x = np.arange(width, dtype=np.float32)[None, :]
    y = np.arange(height, dtype=np.float32)[:, None]
    from_x = m[0] * x + m[1] * y + m[2]
    from_y = m[3] * x + m[4] * y + m[5]
    framed = np.full((height + 2, width + 2, count), fill, np.float32)  # the frame stands for all pixels outside
    framed[1:-1, 1:-1] = image
    flat = framed.reshape(-1, count)

    def at(rows: Array, columns: Array) -> Array:
        inside_rows = np.clip(rows + 1, 0, height + 1).astype(np.int64)
        inside_columns = np.clip(columns + 1, 0, width + 1).astype(np.int64)
        return flat.take(inside_rows * (width + 2) + inside_columns, axis=0)

    if interpolation == "nearest":
        return at(_round(from_y), _round(from_x))
    left, top = np.floor(from_x), np.floor(from_y)
    right_share, bottom_share = (from_x - left)[..., None], (from_y - top)[..., None]
    left_share, bottom = 1 - right_share, top + 1
    upper = left_share * at(top, left) + right_share * at(top, left + 1)
    lower = left_share * at(bottom, left) + right_share * at(bottom, left + 1)
    return (1 - bottom_share) * upper + bottom_share * lower


def _round(values: Array) -> Array:
    """Half away from zero, as C++ rounds."""
    return np.trunc(values + np.copysign(np.float32(0.5), values))


def _across(values: Array, image: Array) -> Array:
    """A row that repeats the values of the channels: numpy takes several times as long to broadcast an axis of three."""
    return np.tile(values, image.shape[1])
