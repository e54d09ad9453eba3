"""TensorBoard: scalars of training, validation and LAV, the learning rate, and what layers offer."""

from contextlib import ExitStack
from typing import Any

import keras
import tensorflow as tf

from scena.data.batch import Batch
from scena.model.tensorboard import collect_tensorboard
from scena.model.tensorboard_data import TensorBoardData
from scena.training.callbacks.event_writers import EventWriters
from scena.training.callbacks.params import TensorBoardParams
from scena.training.callbacks.tensorboard_extras import write_histograms, write_parameters
from scena.training.callbacks.tracker import Kind, Tracker
from scena.training.checkpoint.event_files import cut_back, event_sizes


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
        """Takes the folder of the events from the run."""
        super().set_run(run)
        self._writers = EventWriters(run.paths.tensorboard)

    def log_parameters(self, parameters: dict[str, Any]) -> None:
        params = self.run.params
        with self._writers.writing("train"):
            write_parameters(params, type(params)(scenario=params.scenario, gen=params.gen))

    def wants_batches(self) -> bool:
        """Only if values are written by steps."""
        return self.settings.scalars_every.unit == "steps"

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Writes the values of a step, if that was asked for."""
        if self.settings.scalars_every.due_at_step(self.run.progress.step + 1):
            self._flush = False
            self._log(logs or {}, "train", self.run.progress.step + 1)
            self._flush = True

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        """Writes the graph, once it has been made."""
        if self.settings.graph and not self._graph_written and self.run.resumed_from is None:
            graph = self.run.engine.graph()
            if graph is not None:
                with self._writers.writing("train"):
                    tf.summary.graph(graph)
        self._graph_written = True

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Writes the training's values of this epoch."""
        own = {name: value for name, value in (logs or {}).items() if not name.startswith(("val_", "lav_"))}
        settings = self.settings
        if settings.scalars_every.due_at_epoch(epoch + 1):
            self._log({**own, "learning_rate": self.run.learning_rate()}, "train")
        elif settings.scalars_every.unit == "steps":
            self._log({"learning_rate": self.run.learning_rate()}, "train")
        if settings.histograms.due_at_epoch(epoch + 1):
            with self._writers.writing("train"), self.run.train_data.stream(repeat=False) as batches:
                write_histograms(
                    self.run.model,
                    next(iter(batches)),
                    gradients=settings.gradients,
                    step=self.run.progress.step,
                )

    def log_data(self, data: dict[str, TensorBoardData], step: int, kind: Kind) -> None:
        with self._writers.writing(kind):
            for name, value in data.items():
                value.write(name, step)

    def on_validation(self, logs: dict[str, float]) -> None:
        """Writes the values of a validation, and what the network's layers offer on its first batch."""
        super().on_validation(logs)
        if self._offered_at != self.run.progress.step:  # a validation and LAV may come after the same step
            self._offered_at = self.run.progress.step
            self._write_offered()

    def close(self) -> None:
        self._writers.close()

    def log(self, values: dict[str, float], step: int, kind: Kind) -> None:
        with self._writers.writing(kind, flush=self._flush):
            for key, value in values.items():
                tf.summary.scalar(key, value, step=step)

    def _write_offered(self) -> None:
        pipeline = self.run.val_data
        if pipeline is None or not self._layers_offer:
            return
        with ExitStack() as stack:
            collected = stack.enter_context(collect_tensorboard())
            batch: Batch = next(iter(stack.enter_context(pipeline.stream(repeat=False))))
            self.run.built.root({name: keras.ops.convert_to_tensor(value) for name, value in batch.inputs.items()})
        self._layers_offer = bool(collected)
        if collected:
            with self._writers.writing("val"):
                for writer, value in collected:
                    writer.func(writer.name, keras.ops.convert_to_numpy(value), self.run.progress.step)

    def state(self) -> dict[str, Any]:
        """How long each event file is: what comes later is cut off when the run goes on from here."""
        self._writers.flush()
        return {"sizes": event_sizes(self.run.paths.tensorboard)}

    def restore(self, state: dict[str, Any]) -> None:
        """Cuts the event files back to what they were at the checkpoint."""
        cut_back(self.run.paths.tensorboard, state["sizes"])

    def reset(self) -> None:
        """Removes the event files."""
        cut_back(self.run.paths.tensorboard, {})
