"""The checkpoints of a run on disk, each a directory that appears at once, written in the background.

The training waits for a copy in memory, not for the disk. `format.py` has the files, `state.py` collects and restores the state.
"""

import errno
import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from scena.errors import CheckpointError
from scena.storage.durable import make_directory, put_in_place, recover_directory, sync
from scena.storage.run_layout import BEST, DISCARDED, KEEP_FILE, MANIFEST, STATE_FILE, TENSORS_FILE, step_of
from scena.storage.tensor_file import Array, TensorBuffer
from scena.training.checkpoint.format import (
    MOST_STATE_BYTES,
    LoadedCheckpoint,
    StoredState,
    plain_file,
    read_checkpoint,
    write_checkpoint,
)

logger = logging.getLogger(__name__)


class CheckpointStore:
    """The checkpoints of one run, each in a directory named by its step.

    Args:
        directory: where they are.
        keep: how many of the last ones to keep.
        keep_every: keep every Nth permanently; 0 for none.
        run: the identity of the run; checkpoints of other runs are neither read nor removed.
        name: new ones are named NAME-STEP, or STEP without a name.
    """

    def __init__(self, directory: Path, keep: int = 2, keep_every: int = 0, run: str = "", name: str = "") -> None:
        self.name = name
        self.directory = directory
        self.keep = keep
        self.keep_every = keep_every
        self.run = run

    def path(self, step: int) -> Path:
        """The directory of the checkpoint of this step: the existing one, whatever its name, or the one to write."""
        own = self.directory / (f"{self.name}-{step}" if self.name else str(step))
        if _holds(own) or not self.directory.is_dir():
            return own
        others = (self.directory / name for name in sorted(os.listdir(self.directory)) if step_of(name) == step)
        return next((path for path in others if _holds(path)), own)

    def steps(self) -> list[int]:
        """The steps of the existing checkpoints, oldest first."""
        if not self.directory.is_dir():
            return []
        names = {name: step_of(name) for name in os.listdir(self.directory)}
        return sorted({step for name, step in names.items() if step is not None and _holds(self.directory / name)})

    def clean(self) -> None:
        """Removes half-written checkpoints of a killed process."""
        if not self.directory.is_dir():
            return
        for name in {path.name[1:].rpartition(".")[0] for path in self.directory.glob(".*.*")}:
            if step_of(name) is not None:
                self._recover(self.directory / name)

    def begin(self, step: int) -> Path:
        """Creates the empty directory in which the checkpoint of this step is written."""
        aside = self._aside(step)
        try:
            self._recover(self.path(step))
            if os.path.lexists(self.path(step)) and not self._is_own(self.path(step)):
                raise FileExistsError(errno.EEXIST, "it exists already, and is not a checkpoint of this run")
            make_directory(self.directory)
            aside.mkdir()
        except OSError as error:
            raise self.failure(step, error) from error
        return aside

    def commit(self, step: int, tensors: TensorBuffer, state: StoredState, pinned: int | None = None) -> Path:
        """Writes the files into the directory of `begin`, moves it into place and removes old checkpoints, except the pinned one."""
        final, aside = self.path(step), self._aside(step)
        try:
            keep = bool(self.keep_every) and state.number % self.keep_every == 0
            write_checkpoint(aside, tensors, state, keep=keep)
            put_in_place(aside, final)
        except OSError as error:
            self._recover(final)
            raise self.failure(step, error) from error
        self._remove_old(step, pinned)
        return final

    def abandon(self, step: int) -> None:
        """Removes the directory of `begin`."""
        self._recover(self.path(step))

    def _aside(self, step: int) -> Path:
        return self.directory / f".{self.path(step).name}.new"

    def load_latest(self) -> LoadedCheckpoint | None:
        """The newest readable checkpoint; logs and skips those that cannot be read."""
        for step in reversed(self.steps()):
            try:
                return self.load(step)
            except CheckpointError as error:
                logger.warning("%s It is skipped.", error)
        return None

    def load(self, step: int) -> LoadedCheckpoint:
        """Reads one checkpoint.

        Raises:
            CheckpointError: it is damaged, incomplete, or of a newer format.
        """
        path = self.path(step)
        if not path.is_dir():
            there = ", ".join(map(str, self.steps())) or "none"
            raise CheckpointError(f"There is no checkpoint of step {step} in {self.directory}. There are: {there}.")
        loaded = read_checkpoint(path)
        if loaded.step not in (step, None):
            raise CheckpointError(f"The checkpoint {path} cannot be read: it is that of step {loaded.step}, renamed.")
        if self.run and loaded.state.run and loaded.state.run != self.run:
            raise CheckpointError(f"The checkpoint {path} cannot be used: it belongs to another run.")
        return loaded._replace(step=step)

    def discard_after(self, step: int) -> None:
        """Sets later checkpoints aside, because the run resumes from this one; the next checkpoint removes them."""
        for later in self.steps():
            if later > step and self._set_aside(later):
                logger.warning("The checkpoint of step %d is set aside; it is removed with the next checkpoint.", later)
        if self.directory.is_dir():
            sync(self.directory)  # else a power cut could bring them back beside those of the new branch

    def last_good(self) -> str:
        """A sentence that names the last checkpoint, for error messages."""
        steps = self.steps()
        return f"The last checkpoint is {self.path(steps[-1])}." if steps else "There is no checkpoint yet."

    def _remove_old(self, latest: int, pinned: int | None) -> None:
        others = [step for step in self.steps() if step != latest]
        kept = {*others[len(others) - self.keep + 1 :], pinned} if self.keep > 1 else {pinned}
        for step in others:
            if step not in kept and not (self.path(step) / KEEP_FILE).exists():
                self._set_aside(step)
        sync(self.directory)  # else a power cut could leave a checkpoint under its name without its files
        for path in self.directory.glob(f"*{DISCARDED}"):
            if step_of(path.name.removesuffix(DISCARDED)) is not None and _only_ours(path):
                shutil.rmtree(path, ignore_errors=True)

    def _set_aside(self, step: int) -> bool:
        """Renames a checkpoint before its files are removed one by one, so that it never looks like a damaged one."""
        path = self.path(step)
        aside = self.directory / f"{path.name}{DISCARDED}"
        if not self._is_own(path) or (os.path.lexists(aside) and not _only_ours(aside)):
            return False
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
        return True

    def _is_own(self, path: Path) -> bool:
        """Whether a directory is a checkpoint of this run and holds nothing else."""
        if not (_only_ours(path) and _holds(path)):
            return False
        try:
            run = json.loads(plain_file(path / STATE_FILE, MOST_STATE_BYTES).read_bytes()).get("run", "")
        except (OSError, ValueError, AttributeError, RecursionError):
            run = ""  # damaged
        return not run or not self.run or run == self.run

    def _recover(self, path: Path) -> None:
        """Repairs this checkpoint after a crash, unless foreign files are in it."""
        if all(_only_ours(self.directory / f".{path.name}.{end}") for end in ("new", "old")):
            recover_directory(path)

    def failure(self, step: int, error: OSError) -> CheckpointError:
        """The error of a checkpoint that cannot be written."""
        reason = error.strerror or str(error)
        return CheckpointError(f"Cannot write the checkpoint {self.path(step)}: {reason}. {self.last_good()}")


class CheckpointWriter:
    """Copies the state and writes it while the training continues; one checkpoint at a time.

    A checkpoint that cannot be written is reported. The training continues, earlier checkpoints stay, and the next one is tried.
    """

    def __init__(self, store: CheckpointStore) -> None:
        self.store = store
        self.failure: CheckpointError | None = None
        """Why the last checkpoint could not be written; None if it was written."""
        self._buffer = TensorBuffer()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="scena-checkpoint")
        self._pending: Future[None] | None = None

    def reserve(self, arrays: Mapping[str, Array]) -> None:
        """Allocates the memory for a copy of the state ahead of time, in the background."""
        self._pending = self._thread.submit(self._buffer.reserve, arrays)

    def save(
        self,
        step: int,
        arrays: Callable[[], Mapping[str, Array]],
        state: StoredState,
        accompany: Callable[[Path], None],
        pinned: int | None = None,
    ) -> None:
        """Copies the state and starts to write it.

        Args:
            step: the checkpoint's step.
            arrays: reads the variables; called once the buffer is free.
            state: the rest of the state; the caller must not change it afterwards.
            accompany: adds other files to the directory of the checkpoint.
            pinned: the step of an older checkpoint to keep.
        """
        self.wait()
        try:
            aside = self.store.begin(step)
            accompany(aside)
            self._buffer.fill(arrays())
        except (CheckpointError, OSError) as error:
            self.store.abandon(step)
            self._failed(step, error)
            return
        self._pending = self._thread.submit(self._write, step, state, pinned)

    def wait(self) -> None:
        """Waits until the current checkpoint is on disk, or has failed."""
        if self._pending is not None:
            self._pending.result()
            self._pending = None

    def close(self) -> None:
        """Waits, and ends the thread."""
        self.wait()
        self._thread.shutdown()

    def _write(self, step: int, state: StoredState, pinned: int | None) -> None:
        try:
            self.store.commit(step, self._buffer, state, pinned)
        except (CheckpointError, OSError) as error:
            self._failed(step, error)
        else:
            if self.failure is not None:
                logger.info("Checkpoints can be written again: %s", self.store.path(step))
            self.failure = None

    def _failed(self, step: int, error: CheckpointError | OSError) -> None:
        self.failure = error if isinstance(error, CheckpointError) else self.store.failure(step, error)
        logger.warning("%s The training continues; the next checkpoint is written when it is due.", self.failure)


def _holds(path: Path) -> bool:
    """Whether a directory holds a checkpoint, possibly a damaged one."""
    return not path.is_symlink() and any(os.path.lexists(path / name) for name in (STATE_FILE, TENSORS_FILE))


def _only_ours(path: Path) -> bool:
    """Whether a directory is missing or holds only files of a checkpoint."""
    if not os.path.lexists(path):
        return True
    names = {STATE_FILE, TENSORS_FILE, MANIFEST, KEEP_FILE, BEST}
    return (
        path.is_dir()
        and not path.is_symlink()
        and {name.removeprefix(".").removesuffix(".new") for name in os.listdir(path)} <= names
    )
