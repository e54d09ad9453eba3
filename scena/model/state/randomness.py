"""The random state outside of layers: the global generators of Python, numpy and Keras; and blocks of code that leave it unchanged."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import keras
import numpy as np

_OTHER = 0x5CE7A
_NAMES = "object_name_uids"
"""Keras' counters of the names of layers."""


def global_seed_generator() -> keras.random.SeedGenerator:
    """The generator that Keras uses for random operations without a seed of their own.

    Keras has no public name for it; without it, a run with such an operation could not be resumed exactly.
    """
    from keras.src.random import seed_generator

    return seed_generator.global_seed_generator()


def global_seed_variables() -> list[keras.Variable]:
    """The state of `global_seed_generator`."""
    return [global_seed_generator().state]


@contextmanager
def use_global_seed(generator: Any) -> Iterator[None]:
    """Sets the global generator of this thread while the block runs: Keras has one per thread, and would create a new one."""
    from keras.src.backend.common import global_state
    from keras.src.random.seed_generator import GLOBAL_SEED_GENERATOR

    before = global_state.get_global_attribute(GLOBAL_SEED_GENERATOR)
    global_state.set_global_attribute(GLOBAL_SEED_GENERATOR, generator)
    try:
        yield
    finally:
        global_state.set_global_attribute(GLOBAL_SEED_GENERATOR, before)


def random_state() -> dict[str, Any]:
    """The global generators of Python and numpy, which a user's callback may use, as plain data."""
    kind, key, position, has_gauss, gauss = np.random.get_state()
    version, words, following = random.getstate()
    return {
        "numpy": [kind, [int(word) for word in key], int(position), int(has_gauss), float(gauss)],
        "python": [version, list(words), following],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Restores the result of `random_state`."""
    kind, key, *rest = state["numpy"]
    np.random.set_state((kind, np.array(key, np.uint32), *rest))
    version, words, following = state["python"]
    random.setstate((version, tuple(words), following))


@contextmanager
def randomness_kept() -> Iterator[None]:
    """Random numbers that the block draws do not change those that are drawn after it."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    seeds = [(variable, keras.ops.convert_to_numpy(variable.value)) for variable in global_seed_variables()]
    try:
        with _other_tensorflow_seeds():
            yield
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)
        for variable, value in seeds:
            variable.assign(value)


@contextmanager
def unnoticed() -> Iterator[None]:
    """The same, and layers that the block creates do not change the names of those that are created after it."""
    from keras.src.backend.common import global_state

    names = copy(global_state.get_global_attribute(_NAMES))
    with randomness_kept():
        try:
            yield
        finally:
            global_state.set_global_attribute(_NAMES, names)


@contextmanager
def _other_tensorflow_seeds() -> Iterator[None]:
    """Inside, eager operations without a seed get others: TensorFlow continues a sequence of draws when it sees the same seed again."""
    if keras.config.backend() != "tensorflow":
        yield
        return
    from tensorflow.python.eager import context

    state: Any = context.context()
    before = state._rng
    state._rng = random.Random(_OTHER)
    try:
        yield
    finally:
        state._rng = before
