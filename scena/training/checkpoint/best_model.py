"""The best model on disk: always complete, and always that of the checkpoint a run resumes from."""

import errno
import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.storage.checksums import DamagedFileError, keep_foreign, seal, verify_tree
from scena.storage.durable import link_tree, recover_directory, replace_directory
from scena.storage.run_layout import BEST, EXPORT_FILE, MANIFEST

if TYPE_CHECKING:
    from scena.model.built import Snapshot
    from scena.training.run import TrainingRun

logger = logging.getLogger(__name__)


class BestModelDirectory:
    """Writes the export of the best model and links it into checkpoints, which costs no space.

    A full disk does not end the training: the weights stay in memory until they can be written. Until then no checkpoint is
    taken, because its best model would be missing.

    Args:
        run: the training.
    """

    def __init__(self, run: "TrainingRun") -> None:
        self.run = run
        self.step: int | None = None
        self.expected: Any = None
        """Outputs of the best model for some samples, if this process wrote it."""
        self.verified = False
        """Whether the directory was read back since it was written last."""
        self._first = True
        self._unwritten: tuple[Snapshot, dict[str, Any]] | None = None

    @property
    def path(self) -> Path:
        """The directory of the best model."""
        return self.run.paths.best

    def write(self, result: dict[str, Any]) -> None:
        """Exports the current weights."""
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

    def retry(self) -> None:
        """Writes a best model that could not be written before.

        Raises:
            OSError: it still cannot be written.
        """
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

    def add_to(self, checkpoint: Path) -> None:
        """Links the best model into a checkpoint."""
        self.retry()
        if self.step is None:
            return
        if not (self.path / EXPORT_FILE).is_file():
            raise FileNotFoundError(errno.ENOENT, "the best model is no longer there", str(self.path))
        link_tree(self.path, checkpoint / BEST)

    def go_back(self, step: int | None) -> None:
        """Restores the best model of the checkpoint that the run resumes from.

        Args:
            step: the step it is from, None if there was no best model yet.
        """
        self.step = step
        recover_directory(self.path)
        if step is None:
            self.remove()
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
        if not _same(stored / EXPORT_FILE, self.path / EXPORT_FILE):
            replace_directory(self.path, lambda aside: self._refill(aside, stored))

    def remove(self) -> None:
        """Removes the best model: the run had none at the checkpoint it resumes from."""
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

    def _export(self, result: dict[str, Any]) -> None:
        run = self.run
        check = run.verification.of_export(self.path, self.expected) if run.verification and self._first else None
        run.scenario.export(
            run.built, self.path, run.params, saved_model=False, check=check, result=result, code=run.code
        )
        self.verified, self._first = check is not None, False


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()
