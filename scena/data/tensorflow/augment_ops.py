"""The functions of `data/image/augment/arrays.py` for TensorFlow: images are tensors (height, width, channels) of uint8 or float32.

Those for whole batches also take (batch, height, width, channels), with random numbers of shape (batch, 1, 1, 1). TensorFlow takes
several times as long where an axis of three channels is broadcast, so channels are spread over rows.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from scena.data.stages.rng import SCALE

cos, sin, sqrt, exp = tf.cos, tf.sin, tf.sqrt, tf.exp
minimum, maximum = tf.minimum, tf.maximum
_PHILOX = 1
_PIXELS = 8


def uniforms(key: Any, count: int) -> Any:
    """The random numbers of a key (a uint64 scalar), as `random.uniforms` draws them."""
    if not count:
        return tf.zeros([0], tf.float64)
    draw, counter = tf.raw_ops.StatelessRandomUniformFullIntV2, tf.zeros([2], tf.uint64)
    words = draw(shape=[count], key=tf.reshape(key, [1]), counter=counter, alg=_PHILOX, dtype=tf.uint32)
    return tf.cast(tf.bitwise.right_shift(words, tf.constant(8, tf.uint32)), tf.float64) * SCALE


def real(value: Any) -> Any:
    return tf.cast(value, tf.float64)


def integer(value: Any) -> Any:
    return tf.cast(value, tf.int32)


def single(value: Any) -> Any:
    return tf.cast(value, tf.float32)


def size(image: Any) -> tuple[Any, Any]:
    """Height and width, as numbers where they are known."""
    shape = tf.shape(image)
    return image.shape[-3] or shape[-3], image.shape[-2] or shape[-2]


def channels(image: Any) -> int:
    return int(image.shape[-1])


def to_float(image: Any) -> Any:
    return tf.cast(image, tf.float32)


def choose(condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    return tf.cond(condition, yes, no)


def check_fits(height: Any, width: Any, rows: int, columns: int) -> None:
    """Does nothing: the slice itself fails with a message."""


def crop(image: Any, top: Any, left: Any, rows: Any, columns: Any) -> Any:
    return tf.slice(image, [top, left, 0], [rows, columns, image.shape[-1]])


def flip_columns(image: Any) -> Any:
    return tf.reverse(image, [1])


def flip_rows(image: Any) -> Any:
    return tf.reverse(image, [0])


def quarter_turns(image: Any, turns: Any) -> Any:
    return tf.image.rot90(image, turns)


def clip(image: Any, low: float, high: float) -> Any:
    return tf.clip_by_value(image, low, high)


def scale_channels(image: Any, factor: Any, offset: Any) -> Any:
    """Each channel times its factor, plus its offset."""
    image = to_float(image)
    if channels(image) != len(factor):
        return image * factor + offset
    return _shaped(_rows(image) * _across(factor, image) + _across(offset, image), image)


def channel_means(image: Any) -> Any:
    return tf.reduce_mean(tf.reduce_mean(image, axis=-3, keepdims=True), axis=-2, keepdims=True)


def mix_channels(image: Any, matrix: Any, offset: Any) -> Any:
    """Each new channel is a weighted sum of the old ones, plus an offset."""
    area = image.shape[-3:-1]
    together = math.gcd(_PIXELS, math.prod(area)) if None not in area else 1
    # several pixels at a time, with a larger matrix: products with one of 3 × 3 take three times as long
    blocks = tf.eye(together)[:, None, :, None] * matrix[..., None, :, None, :]
    matrix = tf.reshape(blocks, [*_batch(image), 3 * together, 3 * together])
    mixed = tf.matmul(tf.reshape(image, [*_batch(image), -1, 3 * together]), matrix, transpose_b=True)
    return _shaped(tf.reshape(mixed, tf.shape(_rows(image))) + _across(offset, image), image)


def mix_vector(vector: Any, matrix: Any) -> Any:
    return tf.matmul(vector, matrix, transpose_b=True)


def pad(image: Any, rows: Any, columns: Any, mode: str, value: float) -> Any:
    """With a border of rows and columns on each side."""
    width = [[0, 0]] * len(_batch(image)) + [[rows, rows], [columns, columns], [0, 0]]
    return tf.pad(image, width, mode.upper(), constant_values=tf.cast(value, image.dtype))


def paint(image: Any, top: Any, left: Any, rows: Any, columns: Any, value: float) -> Any:
    """A box of one value."""
    height, width = size(image)
    colour = tf.cast(value, image.dtype)
    if not _batch(image):
        band = image[top : top + rows]
        painted = tf.fill([rows, columns, channels(image)], colour)
        band = tf.concat([band[:, :left], painted, band[:, left + columns :]], axis=1)
        return tf.ensure_shape(tf.concat([image[:top], band, image[top + rows :]], axis=0), image.shape)
    lines, positions = tf.range(height)[:, None], tf.range(width * channels(image)) // channels(image)
    top, left = top[..., 0], left[..., 0]
    vertical = tf.logical_and(lines >= top, lines < top + rows)
    horizontal = tf.logical_and(positions >= left, positions < left + columns)
    inside = tf.logical_and(vertical, horizontal)
    return _shaped(tf.where(inside, tf.fill(tf.shape(inside), colour), _rows(image)), image)


def resize(image: Any, target: Sequence[int], interpolation: str) -> Any:
    return tf.image.resize(image, list(target), method=interpolation)


def affine(image: Any, matrix: Sequence[Any], interpolation: str, fill: float) -> Any:
    """Each new pixel (x, y) is taken from (m0 x + m1 y + m2, m3 x + m4 y + m5)."""
    batch = _batch(image)
    flat = [tf.reshape(tf.cast(value, tf.float32), [-1]) for value in [*matrix, 0.0, 0.0]]
    values = [tf.broadcast_to(value, batch or [1]) for value in flat]
    turned = tf.raw_ops.ImageProjectiveTransformV3(
        images=image if batch else image[None],
        transforms=tf.stack(values, axis=1),
        output_shape=tf.shape(image)[-3:-1],
        fill_value=fill,
        interpolation=interpolation.upper(),
        fill_mode="CONSTANT",
    )
    return tf.ensure_shape(turned if batch else turned[0], image.shape)


def _batch(image: Any) -> list[int]:
    """The size of the batch, or nothing for one image."""
    return list(image.shape[:-3])


def _rows(image: Any) -> Any:
    """The image as rows, in which channels follow each other."""
    height, width = size(image)
    return tf.reshape(image, [*_batch(image), height, width * channels(image)])


def _shaped(rows: Any, image: Any) -> Any:
    return tf.ensure_shape(tf.reshape(rows, tf.shape(image)), image.shape)


def _across(values: Any, image: Any) -> Any:
    """A row of the image that repeats a value for each channel."""
    values = tf.convert_to_tensor(values)
    row = values[..., 0, :] if values.shape.rank > 1 else values
    return tf.tile(row, [1] * (row.shape.rank - 1) + [size(image)[1]])


_FIRST, _SECOND = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
_ALL = (1 << 64) - 1
_LOW = (1 << 32) - 1


def sample_keys(seed: int, epoch: Any, ordinals: Any, processor: int) -> Any:
    """What `random.keys_of` gives for an epoch and ordinals that are tensors of int64."""
    ordinals = tf.cast(ordinals, tf.uint64)
    same = tf.zeros_like(ordinals)
    # numpy counts up before its first draw
    words = [same + _word(1), same + _word(processor), same, ordinals]
    keys = [_word(seed), tf.cast(epoch, tf.uint64)]
    for number in range(10):
        low_high = _product(words[0], _FIRST), _product(words[2], _SECOND)
        (first_low, first_high), (second_low, second_high) = low_high
        key = [one + _word(weyl * number) for one, weyl in zip(keys, _WEYL, strict=True)]
        words = [_xor(second_high, words[1], key[0]), second_low, _xor(first_high, words[3], key[1]), first_low]
    return words[0]


def _word(value: int) -> Any:
    return tf.constant(np.uint64(value & _ALL))


def _xor(first: Any, second: Any, third: Any) -> Any:
    return tf.bitwise.bitwise_xor(tf.bitwise.bitwise_xor(first, second), third)


def _product(value: Any, factor: int) -> tuple[Any, Any]:
    """The low and the high 64 bits of a product, from products of halves."""

    def low(word: Any) -> Any:
        return tf.bitwise.bitwise_and(word, _word(_LOW))

    def high(word: Any) -> Any:
        return tf.bitwise.right_shift(word, _word(32))

    factor_low, factor_high = _word(factor & _LOW), _word(factor >> 32)
    ends, one, other = low(value) * factor_low, low(value) * factor_high, high(value) * factor_low
    middle = high(ends) + low(one) + low(other)
    return value * _word(factor), high(value) * factor_high + high(one) + high(other) + high(middle)
