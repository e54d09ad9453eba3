"""A callback and a tracker as another package would bring them."""

import json
from pathlib import Path
from typing import Any

from scena import CallbackParams, Tracker, TrackerParams, TrainerCallback, param


class EveryThirdParams(CallbackParams, builds=":EveryThird"):
    """Asks for a checkpoint and a validation every few steps, and for the end at some step."""

    steps: int = param(3, ge=1, help="how often")
    end: int = param(8, ge=1, help="the last step")


class EveryThird(TrainerCallback):
    def steps_until_weights(self, step: int) -> int:
        return self.settings.steps - step % self.settings.steps

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        if self.run.progress.step % self.settings.steps == 0:
            self.run.request_checkpoint()
            self.run.request_validation()
        if self.run.progress.step >= self.settings.end:
            self.run.request_stop()


class LinesParams(TrackerParams, builds=":Lines"):
    """Writes what it gets to a file."""

    file: Path = param(required=True, help="the file")


class Lines(Tracker):
    def _write(self, *what: Any) -> None:
        with self.settings.file.open("a") as file:
            file.write(json.dumps(what) + "\n")

    def log(self, values: dict[str, float], step: int, kind: str) -> None:
        self._write(kind, step, sorted(values))

    def log_parameters(self, parameters: dict[str, Any]) -> None:
        self._write("parameters", parameters["epochs"])

    def close(self) -> None:
        self._write("closed")


class FolderParams(CallbackParams, builds=":Folder"):
    """Puts a folder in the place of `history.csv` in the last epoch, and takes it away after it, if `leaves` is off."""

    leaves: bool = param(False, help="whether it stays")


class Folder(TrainerCallback):
    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        path = self.run.directory / "history.csv"
        if epoch == 1:
            path.unlink()
            path.mkdir()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        if epoch == 1 and not self.settings.leaves:
            (self.run.directory / "history.csv").rmdir()
