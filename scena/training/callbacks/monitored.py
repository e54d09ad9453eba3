"""The value that decides which model is the best one, for every callback that acts on it."""

import math
from collections.abc import Iterable
from typing import Any

from scena.errors import TrainingError
from scena.model.model import ModelBase
from scena.training.callbacks.base import TrainerCallback


class MonitoredCallback(TrainerCallback):
    """Finds the value that `--trainer.best`, or else the model's `best`, names in the results.

    A plain name means the validation's value if there is validation, else LAV's, else the training's. `lav_NAME` is the mean over
    the lists if LAV runs on several; `lav_LIST_NAME` is that of one list.
    """

    mode = "min"
    key = "loss"

    def set_run(self, run: Any) -> None:
        """Reads what "best" means for this model and where the value will come from."""
        super().set_run(run)
        model = run.built.model
        asked = run.params.best
        self.mode, name = (asked.mode, asked.name) if asked is not None else model._best_logging_settings()
        hook = (
            "best"
            if type(model)._best_logging_settings is ModelBase._best_logging_settings
            else "_best_logging_settings"
        )
        self._settings = f"{type(model).__name__}.{hook}" if asked is None else "--trainer.best"
        if self.mode not in ("min", "max"):
            raise TrainingError(f"{self._settings} must say 'min' or 'max' first. Received: {self.mode!r}.")
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
        """What decides, as `--trainer.best` has it; stored with values, which another one must not be compared with."""
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
        """The value in these results; None if they do not hold results of its kind, or if it is not a number."""
        if all(key in logs for key in self._keys):
            value = sum(float(logs[key]) for key in self._keys) / len(self._keys)
            return value if math.isfinite(value) else None
        prefix = f"{self.source}_"
        if self.source == "train" or any(name.startswith(prefix) for name in logs):
            self.check_name(logs)
        return None

    def better(self, value: float, than: float | None, by: float = 0.0) -> bool:
        """Whether a value is better than another one (that may not exist), by more than a given difference."""
        if than is None:
            return True
        return value > than + by if self.mode == "max" else value < than - by
