"""TensorBoard: curves of training, validation and LAV, data and arrays, parameters, histograms, the graph, and profiles."""

import logging
from contextlib import ExitStack
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from scena.errors import TrainingError
from scena.model.tensorboard import TensorBoardData, collect_tensorboard
from scena.params import dump_yaml
from scena.training.callbacks.base import Kind, Tracker, TrainerCallback
from scena.training.callbacks.event_files import (
    DISK_ERRORS,
    EventWriters,
    cut_back,
    disk_reason,
    event_heads,
    event_sizes,
)
from scena.training.callbacks.params import ProfilerParams, TensorBoardParams
from scena.training.steps import stacked
from scena.training.trackers.values import typed_values

logger = logging.getLogger(__name__)


class TensorBoardEvents(Tracker):
    """Writes to OUTPUT_DIR/tensorboard, one curve each for train, val and lav in the same chart; the axis is the step."""

    settings: TensorBoardParams

    def __init__(self, settings: TensorBoardParams) -> None:
        super().__init__(settings)
        self._flush = True
        self._layers_offer = True
        self._offered_at = -1
        self._graph_written = False

    def set_run(self, run: Any) -> None:
        super().set_run(run)
        self._writers = EventWriters(run.paths.tensorboard)

    def log_parameters(self, parameters: dict[str, Any]) -> None:
        params = self.run.params
        with self._writers.writing("train"):
            write_parameters(params, type(params)(scenario=params.scenario, gen=params.gen))

    def wants_batches(self) -> bool:
        return self.settings.scalars_every.unit == "steps"

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        if self.settings.scalars_every.due_at_step(self.run.progress.step + 1):
            self._flush = False
            self._log(logs or {}, "train", self.run.progress.step + 1)
            self._flush = True

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        if self.settings.graph and not self._graph_written and self.run.resumed_from is None:
            graph = self.run.engine.graph()
            if graph is not None:
                with self._writers.writing("train"):
                    tf.summary.graph(graph)
        self._graph_written = True

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        settings = self.settings
        if settings.scalars_every.due_at_epoch(epoch + 1):
            super().on_epoch_end(epoch, logs)
        elif settings.scalars_every.unit == "steps":
            self._log({"learning_rate": self.run.learning_rate()}, "train")
        if settings.histograms.due_at_epoch(epoch + 1):
            with self._writers.writing("train"), self.run.train_data.stream(repeat=False) as batches:
                batch = next(iter(batches))
                write_histograms(self.run.model, batch, gradients=settings.gradients, step=self.run.progress.step)

    def log(self, values: dict[str, float], step: int, kind: Kind) -> None:
        with self._writers.writing(kind, flush=self._flush):
            for key, value in values.items():
                tf.summary.scalar(key, value, step=step)

    def log_data(self, data: dict[str, TensorBoardData], step: int, kind: Kind) -> None:
        with self._writers.writing(kind):
            for name, value in data.items():
                value.write(name, step)

    def on_validation(self, logs: dict[str, float]) -> None:
        super().on_validation(logs)
        if self._offered_at != self.run.progress.step:  # a validation and LAV may follow the same step
            self._offered_at = self.run.progress.step
            self._write_offered()

    def _write_offered(self) -> None:
        """Writes the arrays that layers offer on the first batch of the validation."""
        pipeline = self.run.val_data
        if pipeline is None or not self._layers_offer:
            return
        with ExitStack() as stack:
            collected = stack.enter_context(collect_tensorboard())
            batch = next(iter(stack.enter_context(pipeline.stream(repeat=False))))
            self.run.built.root({name: keras.ops.convert_to_tensor(value) for name, value in batch.inputs.items()})
        self._layers_offer = bool(collected)
        if collected:
            with self._writers.writing("val"):
                for writer, value in collected:
                    writer.func(writer.name, keras.ops.convert_to_numpy(value), self.run.progress.step)

    def close(self) -> None:
        self._writers.close()

    def state(self) -> dict[str, Any]:
        self._writers.flush()
        directory = self.run.paths.tensorboard
        return {"sizes": event_sizes(directory), "heads": event_heads(directory)}

    def restore(self, state: dict[str, Any]) -> None:
        cut_back(self.run.paths.tensorboard, state["sizes"])

    def reset(self) -> None:
        cut_back(self.run.paths.tensorboard, {})


def write_parameters(params: Any, default: Any) -> None:
    """Writes the parameters as text, and as hparams to compare runs by."""
    text = dump_yaml(params, default, full=True)
    tf.summary.text("parameters", "\n".join(f"    {line}" for line in text.splitlines()), step=0)
    from tensorboard.plugins.hparams import api

    api.hparams(typed_values(params))


def write_histograms(model: keras.Model, batch: Any, *, gradients: bool, step: int) -> None:
    """Writes distributions of all weights and, for one batch, of their gradients; does not change the state of the training."""
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
    """Profiles the machine from one step to another, for TensorBoard's Profile tab."""

    def __init__(self, settings: ProfilerParams) -> None:
        super().__init__(settings)
        self._first, self._last = settings.steps
        self._running = False

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self._switch()

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        self._switch()

    def steps_until_weights(self, step: int) -> int | None:
        return min((edge - step for edge in (self._first - 1, self._last) if edge > step), default=None)

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        self._stop()

    def _switch(self) -> None:
        step = self.run.progress.step
        if not self._running and self._first - 1 <= step < self._last:
            try:
                tf.profiler.experimental.start(str(self.run.paths.tensorboard / "train"))
            except tf.errors.AlreadyExistsError as error:
                raise TrainingError("--trainer.profile: another profiler runs in this process.") from error
            except DISK_ERRORS as error:
                self._give_up(error)
                return
            self._running = True
        elif self._running and step >= self._last:
            self._stop()

    def _stop(self) -> None:
        if self._running:
            self._running = False
            try:
                tf.profiler.experimental.stop()
            except DISK_ERRORS as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._first = self._last = 0
        logger.warning("Cannot write the profile: %s. The training continues without it.", disk_reason(error))
