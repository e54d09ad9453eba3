"""The best model of a training, in OUTPUT_DIR/best: always complete, and always that of the checkpoint a run resumes from."""

import errno
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.errors import TrainingError
from scena.storage.checksums import DamagedFileError, keep_foreign, seal, verify_tree
from scena.storage.durable import link_tree, recover_directory, replace_directory
from scena.storage.run_layout import BEST, EXPORT_FILE, MANIFEST
from scena.training.callbacks.monitored import MonitoredCallback

if TYPE_CHECKING:
    from scena.model.built import Snapshot

logger = logging.getLogger(__name__)


class BestModel(MonitoredCallback):
    """Exports the model whenever the monitored value is better than ever before, and links the export into checkpoints.

    A full disk does not end the training: the weights stay in memory until they can be written. Until then no checkpoint is
    taken, because its best model would be missing.
    """

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self.value: float | None = None
        self.epoch: int | None = None
        self.step: int | None = None
        self.expected: Any = None
        """What the model in memory put out for some samples when this process wrote the export."""
        self._first = True
        self._unwritten: tuple[Snapshot, dict[str, Any]] | None = None

    @property
    def path(self) -> Path:
        """The directory of the best model."""
        return self.run.paths.best

    def inside_epoch(self, logs: dict[str, float]) -> None:
        if self.source != "train":
            self._compare(self.run.progress.epoch, {**self.run.progress.logs, **logs})

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._compare(epoch, logs or {})

    def _compare(self, epoch: int, logs: dict[str, float]) -> None:
        value = self.find(logs)
        if value is None or not self.better(value, self.value):
            return
        self.value, self.epoch = value, epoch + 1
        logger.info("New best model: %s = %.6g in epoch %d", self.key, value, epoch + 1)
        with self.run.averaged_weights():
            self._write({"epoch": epoch + 1, "step": self.run.progress.step, "best": self.key, **logs})

    def _write(self, result: dict[str, Any]) -> None:
        self._unwritten = None
        self.step = self.run.progress.step
        self.expected = self.run.verification.expect() if self.run.verification is not None else None
        try:
            self._export(result)
        except OSError as error:
            self._unwritten = self.run.built.snapshot(), result
            logger.warning(
                "Cannot write the best model to %s: %s. It is kept in memory; the next checkpoint retries.",
                self.path,
                error.strerror or error,
            )

    def _export(self, result: dict[str, Any]) -> None:
        run = self.run
        check = self._check() if self._first else None
        run.scenario.export(
            run.built, self.path, run.params, saved_model=False, check=check, result=result, code=run.code
        )
        self._first = False

    def verify(self) -> None:
        """Reads the best model back.

        Raises:
            TrainingError: it does not give what the model in memory gave when it was written.
        """
        check = self._check()
        if check is not None:
            check(self.path)

    def _check(self) -> "Callable[[Path], None] | None":
        verification = self.run.verification
        if verification is None or self.expected is None:
            return None
        return verification.of_export(self.path, self.expected)

    def _retry(self) -> None:
        """Writes a best model that could not be written before; raises OSError if it still cannot."""
        if self._unwritten is None:
            return
        best, result = self._unwritten
        now = self.run.built.snapshot()
        try:
            best.put_back()
            self._export(result)
        finally:
            now.put_back()
        self._unwritten = None
        logger.info("The best model is written now: %s", self.path)

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        try:
            self._retry()
        except OSError as error:  # a training must not end without its best model
            raise TrainingError(f"Cannot write the best model to {self.path}: {error}.") from error

    def add_files(self, directory: Path) -> None:
        self._retry()
        if self.step is None:
            return
        if not (self.path / EXPORT_FILE).is_file():
            raise FileNotFoundError(errno.ENOENT, "the best model is no longer there", str(self.path))
        link_tree(self.path, directory / BEST)

    def pinned_step(self) -> int | None:
        return self.step

    def state(self) -> dict[str, Any]:
        return {"value": self.value, "epoch": self.epoch, "step": self.step, "by": self.by}

    def restore(self, state: dict[str, Any]) -> None:
        self.value, self.epoch, self.step = state["value"], state["epoch"], state["step"]
        self.expected = None
        self._restore_directory()
        if state.get("by", self.by) != self.by:
            logger.info("The best model is now chosen by %s, no longer by %s.", self.by, state["by"])
            self.value = None

    def _restore_directory(self) -> None:
        recover_directory(self.path)
        if self.step is None:
            self.reset()
            return
        stored = (self.run.resumed_from or Path()) / BEST
        if not (stored / EXPORT_FILE).is_file():
            logger.warning("The checkpoint has no copy of the best model; %s stays unchanged.", self.path)
            return
        try:
            verify_tree(stored.parent, BEST)
            verify_tree(stored)
        except DamagedFileError as error:
            logger.warning("The best model so far cannot be used: %s.", error)
        current = self.path / EXPORT_FILE
        if not current.is_file() or current.read_bytes() != (stored / EXPORT_FILE).read_bytes():
            replace_directory(self.path, lambda aside: self._refill(aside, stored))

    def reset(self) -> None:
        if self.path.is_dir():
            replace_directory(self.path, self._refill)
            if os.listdir(self.path) == [MANIFEST]:  # no other files are there
                shutil.rmtree(self.path)

    def _refill(self, aside: Path, stored: Path | None = None) -> None:
        if stored is None:
            seal(aside, {})
        else:
            link_tree(stored, aside)
        keep_foreign(self.path, aside)
