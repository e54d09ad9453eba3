"""The bases of callbacks: `TrainerCallback` sees the whole run and has state in checkpoints; a `Tracker` records values elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import keras
import numpy as np

from scena.params import to_raw
from scena.training.trackers.values import MEASURED

if TYPE_CHECKING:
    from scena.model.tensorboard import TensorBoardData
    from scena.training.run import TrainingRun

Kind = Literal["train", "val", "lav"]


class TrainerCallback(keras.callbacks.Callback):
    """Base of Scena's own callbacks. Any other Keras callback works as well.

    Args:
        settings: the callback's parameters, available as `self.settings` (Keras uses `self.params` for its own purposes).
    """

    run: "TrainingRun"

    def __init__(self, settings: Any = None) -> None:
        super().__init__()
        self.settings = settings

    def set_run(self, run: "TrainingRun") -> None:
        """Called once before the training starts."""
        self.run = run

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        """Called after each step block, with the logs of its last step."""

    def on_validation(self, logs: dict[str, float]) -> None:
        """Called after each validation or LAV, at whatever step, with its results (`val_…` and `lav_…`)."""

    def on_data(self, data: "dict[str, TensorBoardData]") -> None:
        """Called after a validation or LAV with results that are not numbers, by name (`val_…`, `lav_…`)."""

    def inside_epoch(self, logs: dict[str, float]) -> None:
        """Called after a validation or LAV in the middle of an epoch, with its results."""

    def before_lav(self, epoch: int, logs: dict[str, float]) -> None:
        """Called at the end of an epoch, between its validation and its LAV, with the results so far.

        Setting `model.stop_training` here makes this epoch the last one, so that LAV runs in it.
        """

    def wants_batches(self) -> bool:
        """Whether to call the hooks of batches, if the callback has any; asked once, when the training begins."""
        return True

    def steps_until_weights(self, step: int) -> int | None:
        """The number of steps until `on_train_batch_end` has to see the current weights; the step block ends there.

        A callback that requests a checkpoint or a validation (`run.request_checkpoint()`) at a certain step names that step here.
        None: never; batches are then reported after their block, each with its exact logs.
        """
        return None

    def variables(self) -> list[keras.Variable]:
        """Further variables for checkpoints, which belong to neither the model nor the optimizer."""
        return []

    def state(self) -> dict[str, Any]:
        """The state of this callback for checkpoints, as plain data."""
        return {}

    def add_files(self, directory: Path) -> None:
        """Adds files to the directory of a checkpoint that is being written."""

    def pinned_step(self) -> int | None:
        """The step of a checkpoint that must be kept, however old it gets."""
        return None

    def restore(self, state: dict[str, Any]) -> None:
        """Restores the result of `state`, and this callback's files as they were then (`run.resumed_from`)."""

    def on_exported(self) -> None:
        """Called after the last step, when the exports are written."""

    def release(self) -> None:
        """Called last, however the training ends: frees what the callback holds."""

    def reset(self) -> None:
        """Removes this callback's files: a run that ended before its first checkpoint starts from the beginning."""


class Tracker(TrainerCallback):
    """Base of callbacks that record values somewhere: TensorBoard, and services of other packages. Override `log` and, as needed, the rest.

    Checkpoints keep the result of `state`; `restore` gets it when a run resumes. So a tracker can remove, or skip, what it recorded
    after that checkpoint and will receive again.
    """

    def log(self, values: dict[str, float], step: int, kind: Kind) -> None:
        """Records numbers: of the training after each epoch, of a validation or LAV whenever it ran."""

    def log_parameters(self, parameters: dict[str, Any]) -> None:
        """Records the parameters of a new run; not called when it resumes."""

    def log_data(self, data: "dict[str, TensorBoardData]", step: int, kind: Kind) -> None:
        """Records images, curves and the like of an evaluator or a metric."""

    def close(self) -> None:
        """Called at the end of a training."""

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        if self.run.resumed_from is None:
            self.log_parameters(to_raw(self.run.params))

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        own = {name: value for name, value in (logs or {}).items() if not name.startswith(("val_", "lav_"))}
        self._log({**own, "learning_rate": self.run.learning_rate()}, "train")

    def on_validation(self, logs: dict[str, float]) -> None:
        for kind in MEASURED:
            self._log(_of(kind, logs), kind)

    def on_data(self, data: "dict[str, TensorBoardData]") -> None:
        for kind in MEASURED:
            if own := _of(kind, data):
                self.log_data(own, self.run.progress.step, kind)

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        self.close()

    def _log(self, values: dict[str, float], kind: Kind, step: int | None = None) -> None:
        scalars = {key: float(value) for key, value in values.items() if np.ndim(value) == 0}
        if scalars:
            self.log(scalars, self.run.progress.step if step is None else step, kind)


def _of(kind: Kind, results: dict[str, Any]) -> dict[str, Any]:
    prefix = f"{kind}_"
    return {name.removeprefix(prefix): value for name, value in results.items() if name.startswith(prefix)}
