"""The values of each epoch: `history.csv`, and a table in the log when a training ends."""

import contextlib
import csv
import io
import logging
import time
from typing import Any

from scena.storage.checksums import forget, write_checked
from scena.storage.run_layout import HISTORY_FILE
from scena.training.callbacks.base import TrainerCallback
from scena.training.callbacks.best import BestModel
from scena.training.run import KINDS

logger = logging.getLogger(__name__)

SEPARATE = ("epoch", "step", "learning_rate", "seconds")
MOST_ROWS = 20
WORDS = {"data": "waiting for data", "step": "steps", "validation": "validation", "checkpoint": "checkpoints"}


class HistoryWriter(TrainerCallback):
    """Keeps the values of each epoch. It replaces the file as a whole, so that a reader never sees half a row."""

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self.rows: list[dict[str, Any]] = []
        self._started = time.monotonic()
        self._failed = False

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._started = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        row = {
            "epoch": epoch + 1,
            "step": self.run.progress.step,
            "learning_rate": self.run.learning_rate(),
            "seconds": round(time.monotonic() - self._started, 3),
        }
        self.rows.append({**row, **{name: float(value) for name, value in (logs or {}).items()}})
        self._write()

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        if not self._failed:
            return
        self._write()
        if self._failed:
            logger.warning("%s lacks epochs. Once it can be written: scena resume %s", HISTORY_FILE, self.run.directory)

    def _write(self) -> None:
        names = dict.fromkeys([*SEPARATE, *(name for row in self.rows for name in row)])
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(names))
        writer.writeheader()
        writer.writerows(self.rows)
        path = self.run.directory / HISTORY_FILE
        try:
            write_checked(path, text.getvalue())
        except OSError as error:
            if not self._failed:
                logger.warning(
                    "Cannot write %s: %s. Scena retries after each epoch and at the end.", path, error.strerror
                )
            self._failed = True
        else:
            if self._failed:
                logger.info("%s can be written again; nothing was lost.", path)
            self._failed = False

    def state(self) -> dict[str, Any]:
        return {"rows": list(self.rows)}

    def restore(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])
        if self.rows:
            self._write()
        else:
            self.reset()

    def reset(self) -> None:
        self.rows = []
        with contextlib.suppress(OSError):
            forget(self.run.directory / HISTORY_FILE)


class EpochTable(TrainerCallback):
    """Logs the epochs as a table, with a star at the best one, and where the time went."""

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self.run.stopwatch.take()

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        history, best = self.run.callback(HistoryWriter), self.run.callback(BestModel)
        if history is not None and history.rows:
            logger.info("%s", format_table(history.rows, best.epoch if best is not None else None))
        logger.info("%s", format_times(self.run.stopwatch.take()))


def format_table(rows: list[dict[str, Any]], best: int | None = None) -> str:
    """The epochs as aligned text; of a long training the last ones and the best one, which has a star."""
    shown = [row for i, row in enumerate(rows) if i >= len(rows) - MOST_ROWS or row["epoch"] == best]
    names = list(dict.fromkeys(name for row in shown for name in row if name != "seconds"))
    names = [*sorted(names, key=lambda name: name.startswith(("val_", "lav_"))), "seconds"]
    lines = [names, *([_cell(row.get(name)) for name in names] for row in shown)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    marks = ["", *["*" if row["epoch"] == best else "" for row in shown]]
    return "\n".join(
        f"{mark:<2}" + "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
        for mark, line in zip(marks, lines, strict=True)
    )


def format_times(times: dict[str, float]) -> str:
    """The shares of the time as a sentence."""
    total = max(times["total"], 1e-9)
    shares = [f"{WORDS[kind]} {100 * times[kind] / total:.0f} %" for kind in KINDS]
    rest = max(total - sum(times[kind] for kind in KINDS), 0.0)
    return f"Time: {total:.1f} s ({', '.join(shares)}, other {100 * rest / total:.0f} %)"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.4g}"
