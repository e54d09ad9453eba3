"""Callbacks that act on one monitored value, which also selects the best model: early stopping, and lowering the learning rate."""

import logging
import math
from collections.abc import Iterable
from typing import Any

from scena.errors import TrainingError
from scena.model.model import ModelBase
from scena.training.callbacks.base import TrainerCallback
from scena.training.callbacks.params import EarlyStoppingParams
from scena.training.schedules.schedules import ReduceOnPlateauSchedule

logger = logging.getLogger(__name__)


class MonitoredCallback(TrainerCallback):
    """Finds the value that `--trainer.best`, or else the model's `best`, names in the results.

    A plain name means the validation's value if there is validation, else LAV's, else the training's. `lav_NAME` is the mean over
    the lists if LAV runs on several; `lav_LIST_NAME` is that of one list.
    """

    mode = "min"
    key = "loss"

    def set_run(self, run: Any) -> None:
        super().set_run(run)
        model = run.built.model
        asked = run.params.best
        self.mode, name = (asked.mode, asked.name) if asked is not None else model._best_logging_settings()
        inherited = type(model)._best_logging_settings is ModelBase._best_logging_settings
        hook = f"{type(model).__name__}.{'best' if inherited else '_best_logging_settings'}"
        self._settings = hook if asked is None else "--trainer.best"
        if self.mode not in ("min", "max"):
            raise TrainingError(f"{self._settings} must start with 'min' or 'max'. Received: {self.mode!r}.")
        validates = run.val_data is not None
        if name.startswith("lav_") and not run.params.lav_every_n:
            raise TrainingError(
                f"The best model is chosen by {name!r} ({self._settings}), but LAV is off: --trainer.lav_every_n 1."
            )
        if name.startswith("val_") and not validates:
            raise TrainingError(f"The best model is chosen by {name!r} ({self._settings}), but there is no validation.")
        if name.startswith("train_"):
            self.key = name.removeprefix("train_")
        elif name.startswith(("val_", "lav_")):
            self.key = name
        else:
            self.key = f"val_{name}" if validates else f"lav_{name}" if run.params.lav_every_n else name
        self._keys = [self.key]
        lists = [part for part in run.params.gen.lav_gen() if part] if self.source == "lav" else []
        if lists and not any(self.key.startswith(f"lav_{part}_") for part in lists):
            self._keys = [f"lav_{part}_{self.key.removeprefix('lav_')}" for part in lists]

    @property
    def by(self) -> str:
        """The monitored value as `--trainer.best` names it; stored in checkpoints, since values of another one cannot be compared."""
        return f"{self.mode}:{self.key}" if self.source != "train" else f"{self.mode}:train_{self.key}"

    @property
    def source(self) -> str:
        """Where the value comes from: "val", "lav" or "train"."""
        return self.key[:3] if self.key.startswith(("val_", "lav_")) else "train"

    def check_name(self, names: Iterable[str]) -> None:
        """Raises unless the value is among these names of results."""
        there = sorted(names)
        if any(key not in there for key in self._keys):
            raise TrainingError(
                f"The best model is chosen by {self.key!r} ({self._settings}), but there are only {', '.join(there)}. "
                "Choose one of them there, or with --trainer.best, such as min:val_loss."
            )

    def find(self, logs: dict[str, float]) -> float | None:
        """The value in these results; None if they are of another kind, or if it is not finite."""
        if all(key in logs for key in self._keys):
            value = sum(float(logs[key]) for key in self._keys) / len(self._keys)
            return value if math.isfinite(value) else None
        prefix = f"{self.source}_"
        if self.source == "train" or any(name.startswith(prefix) for name in logs):
            self.check_name(logs)
        return None

    def better(self, value: float, than: float | None, by: float = 0.0) -> bool:
        """Whether a value is better than another one, if there is one, by more than `by`."""
        if than is None:
            return True
        return value > than + by if self.mode == "max" else value < than - by


class EarlyStopping(MonitoredCallback):
    """Ends the training when the model no longer improves, or is good enough."""

    settings: EarlyStoppingParams

    def __init__(self, settings: EarlyStoppingParams) -> None:
        super().__init__(settings)
        self.best: float | None = None
        self.best_epoch = 0
        self.stopped = ""
        self._pending: float | None = None

    def set_run(self, run: Any) -> None:
        super().set_run(run)
        self.mode = self.settings.mode or self.mode

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        if self.stopped:  # a run that had stopped stays stopped when it resumes
            logger.info("Early stopping: this run has stopped. %s", self.stopped)
            self.model.stop_training = True

    def on_validation(self, logs: dict[str, float]) -> None:
        value = self.find(logs)
        if value is not None and (self._pending is None or self.better(value, self._pending)):
            self._pending = value

    def before_lav(self, epoch: int, logs: dict[str, float]) -> None:
        # LAV has to know that this epoch is the last; the decision itself is noted when the epoch has ended
        if self.source != "lav" and self._decided(epoch + 1, logs)[2]:
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self.best, self.best_epoch, reason = self._decided(epoch + 1, logs or {})
        if (epoch + 1) % self.settings.frequency == 0:
            self._pending = None
        if reason:
            self.stopped = reason
            logger.info("Early stopping in epoch %d: %s", epoch + 1, reason)
            self.model.stop_training = True

    def _decided(self, epoch: int, logs: dict[str, float]) -> tuple[float | None, int, str]:
        """The best value and its epoch, including this one, and the reason to stop, if there is one."""
        value = self.find(logs) if self.source == "train" else self._pending
        if value is None or epoch % self.settings.frequency:
            return self.best, self.best_epoch, ""
        best, best_epoch = (value, epoch) if self.better(value, self.best) else (self.best, self.best_epoch)
        assert best is not None
        return best, best_epoch, self._reason(value, best, epoch - best_epoch)

    def _reason(self, value: float, best: float, waited: int) -> str:
        low, high = self.settings.lower_threshold, self.settings.upper_threshold
        goal, start = (high, low) if self.mode == "max" else (low, high)
        if goal is not None and (value >= goal if self.mode == "max" else value <= goal):
            return f"{self.key} = {value:.6g} has reached {goal:g}."
        if start is not None and (best < start if self.mode == "max" else best > start):
            return ""
        if self.settings.n_to_go and waited >= self.settings.n_to_go:
            return f"{self.key} has not improved on {best:.6g} for {waited} epoch{'s' * (waited != 1)}."
        return ""

    def state(self) -> dict[str, Any]:
        noted = {"best": self.best, "best_epoch": self.best_epoch, "pending": self._pending, "stopped": self.stopped}
        return {**noted, "by": self.by}

    def restore(self, state: dict[str, Any]) -> None:
        if state.get("by", self.by) == self.by:
            self.best, self.best_epoch = state["best"], state["best_epoch"]
            self._pending, self.stopped = state["pending"], state["stopped"]


class PlateauWatcher(MonitoredCallback):
    """Tells the schedule of `--learning_rate ReduceOnPlateau` when to lower the rate, which is state of the optimizer."""

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self.best: float | None = None
        self.waited = 0
        self.cooldown = 0

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        value = self.find(logs or {})
        if value is None:
            return
        schedule: ReduceOnPlateauSchedule = self.run.schedule
        params = schedule.params
        if self.better(value, self.best, by=params.min_delta):
            self.best, self.waited = value, 0
        elif self.cooldown == 0:
            self.waited += 1
        self.cooldown = max(self.cooldown - 1, 0)
        if self.waited >= params.patience:
            before = float(schedule.scale)
            scale = schedule.reduce()
            self.waited, self.cooldown = 0, params.cooldown
            if scale < before:
                logger.info("Learning rate lowered to %.6g: %s has not improved.", scale * params.lr, self.key)

    def state(self) -> dict[str, Any]:
        return {"best": self.best, "waited": self.waited, "cooldown": self.cooldown, "by": self.by}

    def restore(self, state: dict[str, Any]) -> None:
        if state.get("by", self.by) == self.by:
            self.best, self.waited, self.cooldown = state["best"], state["waited"], state["cooldown"]
