"""The value that decides which model is the best one, for every callback that acts on it."""

import math
from typing import Any

from scena.training.callbacks.base import TrainerCallback
from scena.training.errors import TrainingError


class MonitoredCallback(TrainerCallback):
    """Finds the value that the model names in `_best_logging_settings` in the results of the training, of a validation or of LAV.

    A plain name means the validation's value if there is validation, else LAV's, else the training's.
    """

    mode = "min"
    key = "loss"

    def set_run(self, run: Any) -> None:
        """Reads what "best" means for this model and where the value will come from."""
        super().set_run(run)
        model = run.built.model
        self.mode, name = model._best_logging_settings()
        settings = f"{type(model).__name__}._best_logging_settings"
        if self.mode not in ("min", "max"):
            raise TrainingError(f"{settings} must say 'min' or 'max' first. Received: {self.mode!r}.")
        validates = run.val_data is not None
        if name.startswith("lav_") and not run.params.lav_every_n:
            raise TrainingError(
                f"The best model is chosen by {name!r} ({settings}), but LAV is off: --trainer.lav_every_n 1."
            )
        if name.startswith("val_") and not validates:
            raise TrainingError(f"The best model is chosen by {name!r} ({settings}), but there is no validation.")
        if name.startswith(("val_", "lav_")):
            self.key = name
        else:
            self.key = f"val_{name}" if validates else f"lav_{name}" if run.params.lav_every_n else name

    @property
    def source(self) -> str:
        """Where the value comes from: "val", "lav" or "train"."""
        return self.key[:3] if self.key.startswith(("val_", "lav_")) else "train"

    def find(self, logs: dict[str, float]) -> float | None:
        """The value in these results; None if they do not hold results of its kind, or if it is not a number."""
        if self.key in logs:
            value = float(logs[self.key])
            return value if math.isfinite(value) else None
        prefix = f"{self.source}_"
        if self.source == "train" or any(name.startswith(prefix) for name in logs):
            raise TrainingError(
                f"The best model is chosen by {self.key!r}, but there are only {sorted(logs)}. "
                f"Change {type(self.run.built.model).__name__}._best_logging_settings."
            )
        return None

    def better(self, value: float, than: float | None, by: float = 0.0) -> bool:
        """Whether a value is better than another one (that may not exist), by more than a given difference."""
        if than is None:
            return True
        return value > than + by if self.mode == "max" else value < than - by
