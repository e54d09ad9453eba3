"""A scenario whose graph cannot be built: what `scripts.record_terminal` shows about debugging."""

from keras import Sequential, layers, losses, ops

import scena
from examples.tutorial.min.params import DigitsParams, TutorialDataParams


class ModelParams(scena.ModelBaseParams, builds=":Model"):
    """A convolution, and a shortcut around it."""


class Graph(scena.GraphBase[ModelParams]):
    def __init__(self, params, **kwargs):
        super().__init__(params, **kwargs)
        self.features = Sequential([layers.Conv2D(20, 3, 2, activation="relu"), layers.Flatten()])
        self.shortcut = Sequential([layers.Flatten(), layers.Dense(40, "relu")])
        self.logits = layers.Dense(10)

    def build_graph(self, inputs, training=None):
        image = ops.expand_dims(inputs["img"] / 255, -1)
        features, shortcut = self.features(image), self.shortcut(image)
        return {"logits": self.logits(features + shortcut)}


class Model(scena.ModelBase[ModelParams]):
    graph = Graph

    def loss(self, inputs, targets, outputs):
        return {"loss": losses.sparse_categorical_crossentropy(targets["gt"], outputs["logits"], from_logits=True)}


class Digits(scena.Scenario[TutorialDataParams, ModelParams, scena.TrainValParams[DigitsParams]]):
    """Recognises digits."""
