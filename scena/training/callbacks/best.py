"""Keeping the best model of a training in OUTPUT_DIR/best."""

import logging
import math
from typing import Any

from scena.training.callbacks.base import TrainerCallback
from scena.training.errors import TrainingError

logger = logging.getLogger(__name__)


class BestModel(TrainerCallback):
    """Exports the model whenever the value that the model names in `_best_logging_settings` is better than ever before."""

    def __init__(self) -> None:
        super().__init__()
        self.value: float | None = None
        self.epoch: int | None = None
        self.name = ""
        self.mode = "min"

    def set_run(self, run: Any) -> None:
        """Reads what "best" means for this model."""
        super().set_run(run)
        self.mode, self.name = run.built.model._best_logging_settings()
        if self.mode not in ("min", "max"):
            raise TrainingError(
                f"{type(run.built.model).__name__}._best_logging_settings must say 'min' or 'max' first. Received: {self.mode!r}."
            )

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Compares this epoch with the best one so far."""
        logs = logs or {}
        found = self._find(logs)
        if found is None:
            return
        name, value = found
        if not math.isfinite(value) or not self._better(value):
            return
        self.value, self.epoch = value, epoch + 1
        logger.info("New best model: %s = %.6g in epoch %d", name, value, epoch + 1)
        self.run.scenario.export(
            self.run.built,
            self.run.directory / "best",
            self.run.params,
            saved_model=False,
            result={"epoch": epoch + 1, "step": self.run.progress.step, "best": name, **logs},
        )

    def _better(self, value: float) -> bool:
        return self.value is None or (value > self.value if self.mode == "max" else value < self.value)

    def _find(self, logs: dict[str, float]) -> tuple[str, float] | None:
        validated = any(name.startswith(("val_", "lav_")) for name in logs)
        candidates = [f"val_{self.name}", f"lav_{self.name}", self.name]
        if not validated and (self.run.val_data is not None and self.run.params.val_every_n):
            candidates = [self.name] if self.name.startswith(("val_", "lav_")) else []  # this epoch was not validated
        for name in candidates:
            if name in logs:
                return name, float(logs[name])
        if validated or self.run.val_data is None:
            if self.name.startswith("lav_"):
                return None  # LAV does not run in every epoch
            raise TrainingError(
                f"The best model is chosen by {self.name!r}, but there are only {sorted(logs)}. "
                f"Change {type(self.run.built.model).__name__}._best_logging_settings."
            )
        return None

    def state(self) -> dict[str, Any]:
        """The best value so far and its epoch."""
        return {"value": self.value, "epoch": self.epoch}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes them back."""
        self.value, self.epoch = state["value"], state["epoch"]
