"""Keeping the best model of a training in OUTPUT_DIR/best."""

import logging
from typing import Any

from scena.training.callbacks.monitored import MonitoredCallback

logger = logging.getLogger(__name__)


class BestModel(MonitoredCallback):
    """Exports the model whenever the value that the model names in `_best_logging_settings` is better than ever before."""

    def __init__(self) -> None:
        super().__init__()
        self.value: float | None = None
        self.epoch: int | None = None

    def inside_epoch(self, logs: dict[str, float]) -> None:
        """Compares a validation inside an epoch with the best so far."""
        if self.source != "train":
            self._compare(self.run.progress.epoch, {**self.run.progress.logs, **logs})

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Compares this epoch with the best so far."""
        self._compare(epoch, logs or {})

    def _compare(self, epoch: int, logs: dict[str, float]) -> None:
        value = self.find(logs)
        if value is None or not self.better(value, self.value):
            return
        self.value, self.epoch = value, epoch + 1
        logger.info("New best model: %s = %.6g in epoch %d", self.key, value, epoch + 1)
        with self.run.averaged_weights():
            self.run.scenario.export(
                self.run.built,
                self.run.paths.best,
                self.run.params,
                saved_model=False,
                result={"epoch": epoch + 1, "step": self.run.progress.step, "best": self.key, **logs},
            )

    def state(self) -> dict[str, Any]:
        """The best value so far and its epoch."""
        return {"value": self.value, "epoch": self.epoch}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes them back."""
        self.value, self.epoch = state["value"], state["epoch"]
