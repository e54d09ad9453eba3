"""`Tracker`: the base of everything that records the values of a training somewhere: TensorBoard, and services of other packages."""

from typing import Any, Literal

import numpy as np

from scena.model.tensorboard_data import TensorBoardData
from scena.params import to_raw
from scena.training.callbacks.base import TrainerCallback

Kind = Literal["train", "val", "lav"]
KINDS: tuple[Kind, ...] = ("val", "lav")
"""Where results come from beside the training itself; their names begin with it."""


class Tracker(TrainerCallback):
    """Gets each value with its step: override `log` and, as needed, the rest.

    What `state` returns is kept in checkpoints; `restore` gets it back when a run resumes, so that a tracker can take back, or skip,
    what was recorded after that checkpoint and is going to come again.
    """

    def log(self, values: dict[str, float], step: int, kind: Kind) -> None:
        """Records scalars: of the training after an epoch, of a validation or of LAV whenever it ran."""

    def log_parameters(self, parameters: dict[str, Any]) -> None:
        """Records the parameters of a run that starts; not called when it resumes."""

    def log_data(self, data: dict[str, TensorBoardData], step: int, kind: Kind) -> None:
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
        for kind in KINDS:
            self._log({key.removeprefix(f"{kind}_"): v for key, v in logs.items() if key.startswith(f"{kind}_")}, kind)

    def on_data(self, data: dict[str, TensorBoardData]) -> None:
        for kind in KINDS:
            own = {name.removeprefix(f"{kind}_"): value for name, value in data.items() if name.startswith(f"{kind}_")}
            if own:
                self.log_data(own, self.run.progress.step, kind)

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        self.close()

    def _log(self, values: dict[str, float], kind: Kind, step: int | None = None) -> None:
        scalars = {key: float(value) for key, value in values.items() if np.ndim(value) == 0}
        if scalars:
            self.log(scalars, self.run.progress.step if step is None else step, kind)
