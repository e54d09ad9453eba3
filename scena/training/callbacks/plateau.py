"""Lowering the learning rate when the model no longer improves."""

import logging
from typing import Any

from scena.training.callbacks.monitored import MonitoredCallback
from scena.training.schedules.schedules import ReduceOnPlateauSchedule

logger = logging.getLogger(__name__)


class PlateauWatcher(MonitoredCallback):
    """Tells the schedule of `--learning_rate ReduceOnPlateau` when to lower the rate; the rate itself is the optimizer's state."""

    schedule: ReduceOnPlateauSchedule

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self.best: float | None = None
        self.waited = 0
        self.cooldown = 0

    def set_run(self, run: Any) -> None:
        """Takes the schedule of the optimizer."""
        super().set_run(run)
        self.schedule = run.schedule

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Counts an epoch, if it brought a value."""
        value = self.find(logs or {})
        if value is None:
            return
        params = self.schedule.params
        if self.better(value, self.best, by=params.min_delta):
            self.best, self.waited = value, 0
        elif self.cooldown == 0:
            self.waited += 1
        self.cooldown = max(self.cooldown - 1, 0)
        if self.waited >= params.patience:
            before = float(self.schedule.scale)
            scale = self.schedule.reduce()
            self.waited, self.cooldown = 0, params.cooldown
            if scale < before:
                logger.info("Learning rate lowered to %.6g: %s has not improved.", scale * params.lr, self.key)

    def state(self) -> dict[str, Any]:
        """The best value and what has been counted."""
        return {"best": self.best, "waited": self.waited, "cooldown": self.cooldown, "by": self.by}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes them back, unless another value decides now."""
        if state.get("by", self.by) != self.by:
            return
        self.best, self.waited, self.cooldown = state["best"], state["waited"], state["cooldown"]
