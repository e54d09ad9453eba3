"""Keeping the best model of a training in OUTPUT_DIR/best."""

import logging
from pathlib import Path
from typing import Any

from scena.errors import TrainingError
from scena.training.callbacks.monitored import MonitoredCallback
from scena.training.checkpoint.best_model import BestModelDirectory

logger = logging.getLogger(__name__)


class BestModel(MonitoredCallback):
    """Exports the model whenever the value that decides is better than ever before."""

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self.value: float | None = None
        self.epoch: int | None = None

    def set_run(self, run: Any) -> None:
        """Reads what "best" means, and where the model goes."""
        super().set_run(run)
        self.disk = BestModelDirectory(run)

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
            self.disk.write({"epoch": epoch + 1, "step": self.run.progress.step, "best": self.key, **logs})

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        """Writes what could not be written before; a training must not end without its best model."""
        try:
            self.disk.retry()
        except OSError as error:
            raise TrainingError(f"Cannot write the best model to {self.disk.path}: {error}.") from error

    def add_files(self, directory: Path) -> None:
        """Puts the best model into the checkpoint."""
        self.disk.add_to(directory)

    def pinned_step(self) -> int | None:
        """The checkpoint of the best model stays, so that a run can go on from it."""
        return self.disk.step

    def state(self) -> dict[str, Any]:
        """The best value so far, its epoch and its step."""
        return {"value": self.value, "epoch": self.epoch, "step": self.disk.step, "by": self.by}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes them back, and brings the directory back to the best model of that time."""
        self.value, self.epoch = state["value"], state["epoch"]
        self.disk.go_back(state["step"])
        if state.get("by", self.by) != self.by:
            logger.info("The best model is chosen by %s from now on, before: %s.", self.by, state["by"])
            self.value = None

    def reset(self) -> None:
        """Removes the directory."""
        self.disk.remove()
