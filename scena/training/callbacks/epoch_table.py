"""At the end of a training: a table of its epochs, and where the time went."""

import logging
from typing import Any

from scena.training.callbacks.base import TrainerCallback
from scena.training.callbacks.best import BestModel
from scena.training.callbacks.history import HistoryWriter
from scena.training.run import KINDS

logger = logging.getLogger(__name__)

MOST_ROWS = 20
WORDS = {"data": "waiting for data", "step": "steps", "validation": "validation", "checkpoint": "checkpoints"}


class EpochTable(TrainerCallback):
    """Logs the table, with the values that `HistoryWriter` keeps; `BestModel` knows the best epoch."""

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Starts the clock."""
        self.run.stopwatch.take()

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        """Writes the table and the shares of the time."""
        history, best = self.run.callback(HistoryWriter), self.run.callback(BestModel)
        if history is not None and history.rows:
            logger.info("%s", format_table(history.rows, best.epoch if best is not None else None))
        logger.info("%s", format_times(self.run.stopwatch.take()))


def format_table(rows: list[dict[str, Any]], best: int | None = None) -> str:
    """The epochs as aligned text; of a long training the last ones and the best one, which has a star."""
    shown = [row for i, row in enumerate(rows) if i >= len(rows) - MOST_ROWS or row["epoch"] == best]
    names = list(dict.fromkeys(name for row in shown for name in row if name != "seconds"))
    names = [
        *[n for n in names if not n.startswith(("val_", "lav_"))],
        *[n for n in names if n.startswith(("val_", "lav_"))],
    ]
    names.append("seconds")
    lines = [[*names]]
    lines += [[_cell(row.get(name)) for name in names] for row in shown]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
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
