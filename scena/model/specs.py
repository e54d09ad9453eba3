"""From the specs of the data to symbolic Keras inputs."""

from typing import Any

import keras

from scena.data.spec import ArraySpec


def keras_dtype(spec: ArraySpec) -> str:
    """The name that Keras and TensorFlow have for a spec's type."""
    return "string" if spec.dtype.kind in "US" else spec.dtype.name


def symbolic(specs: dict[str, ArraySpec]) -> dict[str, Any]:
    """Keras inputs for the specs, by name."""
    return {name: keras.Input(shape=spec.shape, dtype=keras_dtype(spec), name=name) for name, spec in specs.items()}
