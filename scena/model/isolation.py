"""Doing something beside a training that the training does not notice."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import keras
import numpy as np

from scena.model.state.variables import global_seed_variables

_OTHER = 0x5CE7A
_NAMES = "object_name_uids"
"""Keras' counters of the names of layers."""


@contextmanager
def randomness_kept() -> Iterator[None]:
    """What the block draws does not change what is drawn after it."""
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
