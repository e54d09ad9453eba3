"""`history.csv`: one row per epoch with all values."""

import contextlib
import csv
import io
import logging
import time
from typing import Any

from scena.storage.checksums import forget, write_checked
from scena.storage.run_layout import HISTORY_FILE
from scena.training.callbacks.base import TrainerCallback

logger = logging.getLogger(__name__)

SEPARATE = ("epoch", "step", "learning_rate", "seconds")


class HistoryWriter(TrainerCallback):
    """Keeps the values of each epoch and rewrites the file at once, so that a reader never sees half a row."""

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self.rows: list[dict[str, Any]] = []
        self._started = time.monotonic()
        self._failed = False

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Starts the clock of the epoch."""
        self._started = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Adds a row."""
        row = {
            "epoch": epoch + 1,
            "step": self.run.progress.step,
            "learning_rate": self.run.learning_rate(),
            "seconds": round(time.monotonic() - self._started, 3),
        }
        self.rows.append({**row, **{name: float(value) for name, value in (logs or {}).items()}})
        self.write()

    def write(self) -> None:
        """Writes all rows."""
        names = list(SEPARATE) + [
            name for name in dict.fromkeys(n for row in self.rows for n in row) if name not in SEPARATE
        ]
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows(self.rows)
        path = self.run.directory / HISTORY_FILE
        try:
            write_checked(path, text.getvalue())
        except OSError as error:
            if not self._failed:
                logger.warning("Cannot write %s: %s. It is tried again after each epoch.", path, error.strerror)
            self._failed = True
        else:
            if self._failed:
                logger.info("%s can be written again; nothing of it was lost.", path)
            self._failed = False

    def state(self) -> dict[str, Any]:
        """The rows so far."""
        return {"rows": list(self.rows)}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the rows back; later ones of a cut-off run are dropped."""
        self.rows = list(state["rows"])
        if self.rows:
            self.write()
        else:
            self.reset()

    def reset(self) -> None:
        """Removes the file."""
        self.rows = []
        with contextlib.suppress(OSError):
            forget(self.run.directory / HISTORY_FILE)
