"""The key of each image inside of TensorFlow: numpy's Philox 4x64-10, as the Python pipeline draws it for a sample.

TensorFlow's own Philox has words of 32 bits, so this one is written out. Needs TensorFlow.
"""

from typing import Any

import numpy as np
import tensorflow as tf

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
    mask, half = _word(_LOW), _word(32)
    low, high = tf.bitwise.bitwise_and(value, mask), tf.bitwise.right_shift(value, half)
    factor_low, factor_high = _word(factor & _LOW), _word(factor >> 32)
    ends, one, other = low * factor_low, low * factor_high, high * factor_low
    middle = (
        tf.bitwise.right_shift(ends, half) + tf.bitwise.bitwise_and(one, mask) + tf.bitwise.bitwise_and(other, mask)
    )
    top = high * factor_high + tf.bitwise.right_shift(one, half) + tf.bitwise.right_shift(other, half)
    return value * _word(factor), top + tf.bitwise.right_shift(middle, half)
