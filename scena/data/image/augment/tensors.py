"""What operations are made of, for TensorFlow: images are tensors (height, width, channels) of uint8 or float32.

This module needs TensorFlow.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from scena.data.image.augment.random import SCALE

cos, sin, sqrt, exp = tf.cos, tf.sin, tf.sqrt, tf.exp
minimum, maximum = tf.minimum, tf.maximum
_PHILOX = 1


def uniforms(key: Any, count: int) -> Any:
    """The random numbers of a key (a uint64 scalar), as `random.uniforms` draws them."""
    if not count:
        return tf.zeros([0], tf.float64)
    words = tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=[count], key=tf.reshape(key, [1]), counter=tf.zeros([2], tf.uint64), alg=_PHILOX, dtype=tf.uint32
    )
    return tf.cast(tf.bitwise.right_shift(words, tf.constant(8, tf.uint32)), tf.float64) * SCALE


def real(value: Any) -> Any:
    """A number with 64 bits."""
    return tf.cast(value, tf.float64)


def integer(value: Any) -> Any:
    """The whole part of a positive number."""
    return tf.cast(value, tf.int32)


def single(value: Any) -> Any:
    """A number or tensor with 32 bits."""
    return tf.cast(value, tf.float32)


def size(image: Any) -> tuple[Any, Any]:
    """Height and width, as numbers where they are known."""
    shape = tf.shape(image)
    return image.shape[0] or shape[0], image.shape[1] or shape[1]


def channels(image: Any) -> int:
    """The number of channels."""
    return int(image.shape[-1])


def to_float(image: Any) -> Any:
    """The image in float32."""
    return tf.cast(image, tf.float32)


def choose(condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """One of two results."""
    return tf.cond(condition, yes, no)


def check_fits(height: Any, width: Any, rows: int, columns: int) -> None:
    """Nothing: the slice itself fails with a message."""


def crop(image: Any, top: Any, left: Any, rows: Any, columns: Any) -> Any:
    """A part of the image."""
    return tf.slice(image, [top, left, 0], [rows, columns, image.shape[-1]])


def flip_columns(image: Any) -> Any:
    """Left and right exchanged."""
    return tf.reverse(image, [1])


def flip_rows(image: Any) -> Any:
    """Top and bottom exchanged."""
    return tf.reverse(image, [0])


def quarter_turns(image: Any, turns: Any) -> Any:
    """Turned counter-clockwise."""
    return tf.image.rot90(image, turns)


def clip(image: Any, low: float, high: float) -> Any:
    """Values limited to a range."""
    return tf.clip_by_value(image, low, high)


def channel_means(image: Any) -> Any:
    """The mean of each channel."""
    return tf.reduce_mean(image, axis=[0, 1])


def mix_channels(image: Any, matrix: Any, offset: Any) -> Any:
    """Each new channel is a weighted sum of the old ones, plus an offset."""
    flat = tf.matmul(tf.reshape(image, [-1, 3]), matrix, transpose_b=True) + offset
    return tf.ensure_shape(tf.reshape(flat, tf.shape(image)), image.shape)


def mix_vector(vector: Any, matrix: Any) -> Any:
    """The same for one pixel."""
    return tf.linalg.matvec(matrix, vector)


def pad(image: Any, rows: Any, columns: Any, mode: str, value: float) -> Any:
    """A border of so many rows and columns on both sides."""
    width = [[rows, rows], [columns, columns], [0, 0]]
    return tf.pad(image, width, mode.upper(), constant_values=tf.cast(value, image.dtype))


def paint(image: Any, top: Any, left: Any, rows: Any, columns: Any, value: float) -> Any:
    """A box of one value."""
    height, width = size(image)
    lines, places = tf.range(height), tf.range(width)
    vertical = tf.logical_and(lines >= top, lines < top + rows)[:, None, None]
    horizontal = tf.logical_and(places >= left, places < left + columns)[None, :, None]
    return tf.where(tf.logical_and(vertical, horizontal), tf.cast(value, image.dtype), image)


def resize(image: Any, target: Sequence[int], interpolation: str) -> Any:
    """Scaled, without smoothing."""
    return tf.image.resize(image, list(target), method=interpolation)


def affine(image: Any, matrix: Sequence[Any], interpolation: str, fill: float) -> Any:
    """Each new pixel (x, y) is taken from (m0 x + m1 y + m2, m3 x + m4 y + m5)."""
    values = tf.stack([tf.cast(value, tf.float32) for value in [*matrix, 0.0, 0.0]])
    turned = tf.raw_ops.ImageProjectiveTransformV3(
        images=image[None],
        transforms=values[None],
        output_shape=tf.shape(image)[:2],
        fill_value=fill,
        interpolation=interpolation.upper(),
        fill_mode="CONSTANT",
    )[0]
    return tf.ensure_shape(turned, image.shape)
