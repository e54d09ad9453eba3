"""Stopping when the model no longer improves, or is good enough."""

import logging
from typing import Any

from scena.training.callbacks.monitored import MonitoredCallback
from scena.training.callbacks.params import EarlyStoppingParams

logger = logging.getLogger(__name__)


class EarlyStopping(MonitoredCallback):
    """Ends the training early.

    Args:
        settings: when.
    """

    settings: EarlyStoppingParams

    def __init__(self, settings: EarlyStoppingParams) -> None:
        super().__init__(settings)
        self.best: float | None = None
        self.best_epoch = 0
        self.stopped = ""
        self._pending: float | None = None

    def set_run(self, run: Any) -> None:
        """Takes the mode from the model unless it was given."""
        super().set_run(run)
        self.mode = self.settings.mode or self.mode

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """A run that had stopped stays stopped when it is resumed."""
        if self.stopped:
            logger.info("Early stopping: this run has stopped. %s", self.stopped)
            self.model.stop_training = True

    def on_validation(self, logs: dict[str, float]) -> None:
        """Keeps a value that arrives inside an epoch until the epoch ends."""
        value = self.find(logs)
        if value is not None and (self._pending is None or self.better(value, self._pending)):
            self._pending = value

    def before_lav(self, epoch: int, logs: dict[str, float]) -> None:
        """Decides before LAV, so that LAV knows that this epoch is the last; nothing is noted before the epoch has ended."""
        if self.source != "lav" and self._decided(epoch + 1, logs)[2]:
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Notes the decision, and makes it if LAV gives the value."""
        self.best, self.best_epoch, reason = self._decided(epoch + 1, logs or {})
        if (epoch + 1) % self.settings.frequency == 0:
            self._pending = None
        if reason:
            self.stopped = reason
            logger.info("Early stopping in epoch %d: %s", epoch + 1, reason)
            self.model.stop_training = True

    def _decided(self, epoch: int, logs: dict[str, float]) -> tuple[float | None, int, str]:
        """The best value and its epoch after this one, and the reason to stop, if there is one."""
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
        """The best value, its epoch, a value not yet looked at, and whether the run has stopped."""
        found = {"best": self.best, "best_epoch": self.best_epoch, "pending": self._pending, "stopped": self.stopped}
        return {**found, "by": self.by}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes them back, unless another value decides now."""
        if state.get("by", self.by) != self.by:
            return
        self.best, self.best_epoch = state["best"], state["best_epoch"]
        self._pending, self.stopped = state["pending"], state["stopped"]
