"""Short trainings of the toy scenario, with parameters set by dotted names."""

import hashlib
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tests.toy.scenario import ToyScenario


def toy_params(directory: Path, scenario: Any = ToyScenario, **changes: Any) -> Any:
    """Trainer parameters of two quick epochs without exports; `gen__train__batch_size=4` sets `gen.train.batch_size`."""
    made = scenario.default_trainer_params()
    made.epochs, made.output_dir, made.random_seed = 2, directory, 7
    made.export_best = made.export_final = False
    for name, value in changes.items():
        target: Any = made
        *path, last = name.split("__")
        for part in path:
            target = getattr(target, part)
        setattr(target, last, value)
    return made


def train_toy(directory: Path, callbacks: Any = (), scenario: Any = ToyScenario, **changes: Any) -> Any:
    """Trains and returns the trainer."""
    trainer = scenario.create_trainer(toy_params(directory, scenario, **changes))
    trainer.train(callbacks)
    return trainer


class KeepWeights(keras.callbacks.Callback):
    """Keeps the weights at the end of a training."""

    def on_train_end(self, logs: Any = None) -> None:
        self.weights = [np.asarray(variable.value) for variable in self.model.trainable_variables]


def trained_weights(directory: Path, callbacks: Any = (), **changes: Any) -> list[np.ndarray]:
    """The trainable weights after a training."""
    keep = KeepWeights()
    train_toy(directory, [keep, *callbacks], **changes)
    return keep.weights


def weights_hash(weights: list[np.ndarray]) -> str:
    """One hash of all weights."""
    digest = hashlib.sha256()
    for weight in weights:
        digest.update(weight.tobytes())
    return digest.hexdigest()
