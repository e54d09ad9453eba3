"""Showing how far a training is: a bar on a terminal, a line now and then in a log."""

import logging
import sys
import time
from collections.abc import Mapping
from typing import Any

from scena.logs import shows_progress
from scena.training.callbacks.base import TrainerCallback
from scena.training.callbacks.params import ProgressParams

logger = logging.getLogger(__name__)


class ProgressDisplay(TrainerCallback):
    """Draws the current epoch and writes a line at its end."""

    def __init__(self, settings: ProgressParams) -> None:
        super().__init__(settings)
        self._bar: Any = None
        self._task: Any = None
        self._begun = self._line = 0.0
        self._measured_from: tuple[float, int] | None = None
        """Time and step from which the speed is measured; None until the first block, which compiles the model, is done."""

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._begun = self._line = time.monotonic()
        first_step = self.run.progress.step_in_epoch
        if self._measured_from is not None:
            self._measured_from = (self._begun, first_step)
        if sys.stderr.isatty() and shows_progress():
            self._bar = _create_bar()
            title = f"Epoch {epoch + 1}/{self.run.params.epochs}"
            self._task = self._bar.add_task(
                title, total=self.run.steps_per_epoch, completed=first_step, values="", speed=""
            )
            self._bar.start()

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        now, progress = time.monotonic(), self.run.progress
        speed = self._steps_per_second(now)
        if speed is None:
            self._measured_from = (now, progress.step_in_epoch)
        if self._bar is not None:
            if speed is None:  # its estimate of the time left would include the compilation
                # a reset removes the fields that it does not set
                self._bar.reset(self._task, completed=progress.step_in_epoch, values=_values(logs), speed="")
            else:
                self._bar.update(self._task, advance=steps, values=_values(logs), speed=self._samples_per_second(speed))
        elif now - self._line >= self.settings.every:
            self._line = now
            total = self.run.steps_per_epoch
            facts = [f"step {progress.step_in_epoch}{f'/{total}' if total else ''}", _values(logs)]
            if speed is not None:
                facts.append(self._samples_per_second(speed))
                facts += [f"{_clock((total - progress.step_in_epoch) / speed)} left"] if total else []
            logger.info("Epoch %d/%d: %s", progress.epoch + 1, self.run.params.epochs, ", ".join(facts))

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self.close()
        seconds = time.monotonic() - self._begun
        logger.info("Epoch %d/%d: %s (%.1f s)", epoch + 1, self.run.params.epochs, _values(logs or {}), seconds)

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        self.close()

    def close(self) -> None:
        """Takes the bar away, also after an error."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _steps_per_second(self, now: float) -> float | None:
        """The speed of this epoch; None until the model is compiled."""
        if self._measured_from is None:
            return None
        begun, first_step = self._measured_from
        return max(self.run.progress.step_in_epoch - first_step, 1) / max(now - begun, 1e-9)

    def _samples_per_second(self, speed: float) -> str:
        return f"{speed * self.run.params.gen.train.batch_size:,.0f} samples/s"


def _create_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    class Values(TextColumn):
        """The only column that gives way in a narrow terminal; on one line."""

        def render(self, task: Any) -> Any:
            text = super().render(task)
            text.no_wrap, text.overflow = True, "ellipsis"
            return text

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20, table_column=Column(no_wrap=True)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        Values("{task.fields[values]}", table_column=Column()),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        console=Console(stderr=True),
        transient=True,
    )


def _values(logs: Mapping[str, float]) -> str:
    """loss before the others, training before validation: Keras hands logs over sorted by name."""
    ordered = sorted(
        logs, key=lambda name: (name.startswith(("val_", "lav_")), name[:4] == "lav_", not name.endswith("loss"))
    )
    return ", ".join(f"{name} {logs[name]:.4g}" for name in ordered)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
