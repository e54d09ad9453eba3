"""Uniform random numbers that numpy and TensorFlow draw alike: Philox 4x32-10, keyed by one 64-bit number for each image.

The key comes from the pipeline's generator, so it depends on (seed, epoch, index of the sample) only. TensorFlow has this
generator as an operation (`tensors.py`); here it is in plain Python, about 5 µs for each four numbers.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from scena.data.stages.rng import SampleRandom

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_LOW = 0xFFFFFFFF
SCALE = 2.0**-24


def philox_words(key: int, count: int) -> list[int]:
    """The first `count` 32-bit numbers of a key."""
    words: list[int] = []
    block = 0
    first, second = _MULTIPLIERS
    while len(words) < count:
        a, b, c, d = block, 0, 0, 0
        low, high = key & _LOW, key >> 32
        for _ in range(10):
            left, right = first * a, second * c
            a, b, c, d = (right >> 32) ^ b ^ low, right & _LOW, (left >> 32) ^ d ^ high, left & _LOW
            low, high = (low + _WEYL[0]) & _LOW, (high + _WEYL[1]) & _LOW
        words += (a, b, c, d)
        block += 1
    return words[:count]


def uniforms(key: int, count: int) -> list[float]:
    """`count` numbers from 0 up to, but not including, 1; each a multiple of 2^-24, so that any float holds it exactly."""
    return [(word >> 8) * SCALE for word in philox_words(key, count)]


def key_of(rng: np.random.Generator) -> int:
    """The key of an image from the generator that a processor gets."""
    bits: Any = rng.bit_generator
    return int(bits.random_raw())


def keys_of(seed: int, epoch: int, ordinals: Iterable[int], processor: int) -> np.ndarray[Any, Any]:
    """The keys that the n-th processor gets for samples at these places of an epoch."""
    random = SampleRandom(seed, epoch)
    return np.array([key_of(random.at(int(ordinal), 0, processor)) for ordinal in ordinals], np.uint64)
