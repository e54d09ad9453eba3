"""What TensorBoard shows beside curves, written once or on request: parameters, graph, histograms, profiles."""

import logging
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from scena.errors import TrainingError
from scena.params import dump_yaml, to_raw
from scena.training.callbacks.base import TrainerCallback
from scena.training.callbacks.event_writers import DISK_ERRORS, reason
from scena.training.callbacks.params import ProfilerParams
from scena.training.loop import stacked

logger = logging.getLogger(__name__)


def write_parameters(params: Any, default: Any) -> None:
    """The parameters as text, and as hparams to compare runs by."""
    text = dump_yaml(params, default, full=True)
    tf.summary.text("parameters", "\n".join(f"    {line}" for line in text.splitlines()), step=0)
    from tensorboard.plugins.hparams import api

    api.hparams(flat_values(to_raw(params)))


def flat_values(raw: Any, path: str = "") -> dict[str, Any]:
    """The plain values of a tree of parameters by their dotted names."""
    if isinstance(raw, dict):
        found: dict[str, Any] = {}
        for name, value in raw.items():
            below = path if name == "class" else f"{path}.{name}" if path else name
            found |= flat_values(value, below)
        return found
    if isinstance(raw, list):
        return {path: str(raw)} if path else {}
    return {} if raw is None or not path else {path: raw}


def write_histograms(model: keras.Model, batch: Any, *, gradients: bool, step: int) -> None:
    """Distributions of all weights and, for one batch, of their gradients; the state of the training is not touched."""
    for weight in model.trainable_variables:
        tf.summary.histogram(f"weights/{weight.path}", keras.ops.convert_to_numpy(weight.value), step=step)
    if not gradients:
        return
    counted = [keras.ops.convert_to_numpy(variable.value) for variable in model.metrics_variables]
    data = {part: {name: tf.constant(array[0]) for name, array in stacked([batch], part).items()}
            for part in ("inputs", "targets")}  # fmt: skip
    with tf.GradientTape() as tape:
        # not as in training: dropout would draw random numbers that the training then misses
        loss = model.compute_loss(x=data, y_pred=model(data, training=False), training=False)
    weights = model.trainable_weights
    for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        if gradient is not None:
            tf.summary.histogram(f"gradients/{weight.path}", np.asarray(tf.convert_to_tensor(gradient)), step=step)
    for variable, value in zip(model.metrics_variables, counted, strict=True):
        variable.assign(value)


class Profiler(TrainerCallback):
    """Records what the machine does from one step to another, for TensorBoard's Profile tab.

    Args:
        settings: the first step to record, counted from 1, and the last one.
    """

    def __init__(self, settings: ProfilerParams) -> None:
        super().__init__(settings)
        self.first, self.last = settings.steps
        self.running = False

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Starts at once if the first step is to be recorded."""
        self._switch()

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        """Starts before the first step and stops after the last one."""
        self._switch()

    def steps_until_weights(self, step: int) -> int | None:
        """The block ends right before the first step and right after the last one."""
        until = [edge - step for edge in (self.first - 1, self.last) if edge > step]
        return min(until, default=None)

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        """Stops if the training was shorter."""
        self.stop()

    def _switch(self) -> None:
        step = self.run.progress.step
        if not self.running and self.first - 1 <= step < self.last:
            try:
                tf.profiler.experimental.start(str(self.run.paths.tensorboard / "train"))
            except tf.errors.AlreadyExistsError as error:
                raise TrainingError("--trainer.profile: another profiler runs in this process.") from error
            except DISK_ERRORS as error:
                self._lost(error)
                return
            self.running = True
        elif self.running and step >= self.last:
            self.stop()

    def stop(self) -> None:
        """Writes what was recorded."""
        if self.running:
            self.running = False
            try:
                tf.profiler.experimental.stop()
            except DISK_ERRORS as error:
                self._lost(error)

    def _lost(self, error: Exception) -> None:
        self.first = self.last = 0
        logger.warning("Cannot write the profile: %s. The training goes on without it.", reason(error))
