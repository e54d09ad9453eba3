"""TensorBoard: scalars of training, validation and LAV, the learning rate, and what layers offer."""

from contextlib import ExitStack
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from scena.data.batch import Batch
from scena.model.tensorboard import collect_tensorboard
from scena.training.callbacks.base import TrainerCallback
from scena.training.event_files import cut_back, event_sizes


class TensorBoardEvents(TrainerCallback):
    """Writes to OUTPUT_DIR/tensorboard, one curve each for train, val and lav in the same chart; the axis is the step."""

    def __init__(self) -> None:
        super().__init__()
        self._writers: dict[str, Any] = {}
        self._layers_offer = True

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Writes the training's values of this epoch."""
        own = {name: value for name, value in (logs or {}).items() if not name.startswith(("val_", "lav_"))}
        self._write("train", {**own, "learning_rate": self.run.learning_rate()})

    def on_validation(self, logs: dict[str, float]) -> None:
        """Writes the values of a validation, and what the network's layers offer on its first batch."""
        for name in ("val", "lav"):
            self._write(
                name, {key.removeprefix(f"{name}_"): v for key, v in logs.items() if key.startswith(f"{name}_")}
            )
        self._write_offered()

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        """Closes the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def _write(self, name: str, values: dict[str, float]) -> None:
        scalars = {key: value for key, value in values.items() if np.ndim(value) == 0}
        if not scalars:
            return
        with self._writer(name).as_default():
            for key, value in scalars.items():
                tf.summary.scalar(key, float(value), step=self.run.progress.step)
        self._writer(name).flush()

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
            with self._writer("val").as_default():
                for writer, value in collected:
                    writer.func(writer.name, keras.ops.convert_to_numpy(value), self.run.progress.step)

    def _writer(self, name: str) -> Any:
        if name not in self._writers:
            self._writers[name] = tf.summary.create_file_writer(str(self.run.paths.tensorboard / name))
        return self._writers[name]

    def state(self) -> dict[str, Any]:
        """How long each event file is: what comes later is cut off when the run goes on from here."""
        for writer in self._writers.values():
            writer.flush()
        return {"sizes": event_sizes(self.run.paths.tensorboard)}

    def restore(self, state: dict[str, Any]) -> None:
        """Cuts the event files back to what they were at the checkpoint."""
        cut_back(self.run.paths.tensorboard, state["sizes"])

    def reset(self) -> None:
        """Removes the event files."""
        cut_back(self.run.paths.tensorboard, {})
