"""A scenario that writes down what each of its processes does: the samples it reads and the weights it ends with."""

import os
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from scena import ScenarioBase, TrainValParams, param
from scena.data.params import PipelineMode
from scena.data.sample import Sample
from scena.model.training_model import TrainingModel
from scena.training.trainer import Trainer
from tests.toy.data import Halves
from tests.toy.model import ToyModel
from tests.toy.params import HalvesParams, ToyModelParams, ToyScenarioParams

NOTES = "SCENA_TEST_NOTES"
"""The folder for what processes write down."""
WORKER = "SCENA_TEST_WORKER"
"""The index of a process among several."""


class SeenHalvesParams(HalvesParams, builds=":SeenHalves"):
    """Random numbers."""

    slow_worker: int = param(-1, help="the process whose training samples take a while")


class SeenHalves(Halves):
    """Writes down which training samples are read, and by which process."""

    def __getitem__(self, index: int) -> Sample:
        if self.mode is PipelineMode.TRAINING and NOTES in os.environ:
            with (Path(os.environ[NOTES]) / f"samples-{os.getpid()}").open("a") as file:
                file.write(f"{index}\n")
        if self.mode is PipelineMode.TRAINING and os.environ.get(WORKER) == str(self.params.slow_worker):
            time.sleep(0.02)
        return super().__getitem__(index)


class OwnStep(TrainingModel):
    """Counts after it has applied its gradients, and logs a number of its own and a metric that no one else knows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.late = keras.metrics.Mean(name="late")
        self.steps = keras.Variable(0, dtype="int64", trainable=False, name="own_steps")

    def train_step(self, data: Any) -> dict[str, Any]:
        x = data[0]
        with tf.GradientTape() as tape:
            outputs = self(x, training=True)
            loss = self.compute_loss(x=x, y_pred=outputs, training=True)
        weights = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        self.late.update_state(x["inputs"]["x"][:, 0])
        self.steps.assign_add(1)
        mean = tf.reduce_mean(x["inputs"]["x"])
        return {**self.results(), "late": self.late.result(), "mean": mean, "own": tf.cast(self.steps, tf.float32)}


class SecondOptimizer(TrainingModel):
    """Has an optimizer that nobody else knows of."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.critic = keras.optimizers.SGD()


class SeveralModelParams(ToyModelParams, builds=":SeveralModel"):
    """The toy model, with steps of its own if asked for."""

    step: str = param("keras", help="who writes the step", choices=["keras", "own", "second"])


class SeveralModel(ToyModel):
    def training_model_cls(self) -> type[Any]:
        return {"keras": TrainingModel, "own": OwnStep, "second": SecondOptimizer}[self.params.step]


class RecordingTrainer(Trainer):
    """Writes down the weights of this process when the training is over."""

    def train(self, *args: Any, **kwargs: Any) -> Any:
        rows = super().train(*args, **kwargs)
        if NOTES in os.environ:
            built = SeveralScenario.built
            np.savez(
                Path(os.environ[NOTES]) / f"weights-{os.getpid()}.npz", *[np.asarray(w) for w in built.root.weights]
            )
        return rows


class SeveralScenario(ScenarioBase[ToyScenarioParams, TrainValParams[SeenHalvesParams]]):
    """Which half of eight numbers has the larger sum?"""

    built: Any = None

    @classmethod
    def default_params(cls) -> ToyScenarioParams:
        return ToyScenarioParams(model=SeveralModelParams())

    @classmethod
    def trainer_cls(cls) -> type[Trainer]:
        return RecordingTrainer

    def build(self) -> Any:
        built = super().build()
        type(self).built = type(self).built or built
        return built

    def model_kwargs(self, data: Any) -> dict[str, Any]:
        return {"names": data.names()}
