"""Asks for what cannot be done with JAX."""

import json
from pathlib import Path
from typing import Any

import keras

from scena.backends.jax.engine import JaxEngine, JaxPredictor
from scena.data.spec import ArraySpec
from scena.errors import ScenaError
from scena.prediction.formats.saved_model import write_saved_model


class OwnStep(keras.Model):
    """A training step as TensorFlow wants it."""

    def train_step(self, data: Any) -> dict[str, Any]:
        return {}


class CountsTheBatch(keras.layers.Layer):
    """Needs the batch size as a number while it is compiled."""

    def call(self, x: Any) -> Any:
        return x * len(range(x.shape[0]))

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


def graph(layer: keras.layers.Layer) -> keras.Model:
    """A model with one layer."""
    given = keras.Input((3,), name="x")
    return keras.Model({"x": given}, {"y": layer(given)})


def ask(_: list[str]) -> None:
    """Prints a JSON list of the answers."""
    answers = []
    for attempt in (
        lambda: JaxEngine(OwnStep(), {"x": ArraySpec((3,), "float32")}, {}),
        lambda: JaxPredictor(graph(keras.layers.Dense(2)), {"name": ArraySpec((), "str")}),
        lambda: write_saved_model(Path("never"), graph(CountsTheBatch())),
    ):
        try:
            attempt()
        except ScenaError as error:
            answers.append(f"{type(error).__name__}: {error}")
    print(json.dumps(answers))
