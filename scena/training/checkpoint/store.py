"""Checkpoints on disk: the complete state of a training in one directory that appears at once.

Tensors are stored as safetensors, everything else as JSON that is checked against a schema; nothing in a checkpoint is ever
executed. `state.py` collects and restores the state.
"""

import errno
import json
import logging
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from scena.errors import CheckpointError
from scena.storage.checksums import checksum, file_checksum, seal, verify
from scena.storage.durable import put_in_place, recover_directory, sync, write_file
from scena.storage.run_layout import BEST, DISCARDED, KEEP_FILE, MANIFEST, STATE_FILE, TENSORS_FILE, step_of
from scena.storage.tensor_file import Array, TensorBuffer, read_tensors

logger = logging.getLogger(__name__)

FORMAT = 1
MOST_STATE_BYTES = 256 << 20


class VariableEntry(msgspec.Struct):
    """A stored variable. Keras' path is not a key, but helps to find out what has changed."""

    key: str
    path: str
    shape: list[int]
    dtype: str


class StoredState(msgspec.Struct):
    """The part of a checkpoint that is JSON."""

    format: int
    progress: dict[str, Any]
    callbacks: dict[str, dict[str, Any]]
    variables: list[VariableEntry]
    random: dict[str, Any]
    environment: dict[str, str] = {}
    """Versions and cores of the process that wrote it."""
    number: int = 0
    """The number of checkpoints that the run had written, including this one."""
    run: str = ""
    """The identity of the run; empty if it had none."""
    code: dict[str, dict[str, str]] | None = None
    """Fingerprints of the code that wrote it."""


def _read_1(data: dict[str, Any]) -> StoredState:
    return msgspec.convert(data, StoredState)


READERS: dict[int, Callable[[dict[str, Any]], StoredState]] = {1: _read_1}
"""A reader for each format ever written; a new format adds one and keeps the others."""


class LoadedCheckpoint(NamedTuple):
    """A checkpoint that was read."""

    step: int
    tensors: dict[str, Array]
    state: StoredState


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
        """Removes what a killed process left half-written."""
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
            aside.mkdir(parents=True)
        except OSError as error:
            raise self.failure(step, error) from error
        return aside

    def commit(self, step: int, tensors: TensorBuffer, state: StoredState, pinned: int | None = None) -> Path:
        """Writes tensors and state into the directory of `begin`, moves it into place and removes old checkpoints.

        Args:
            step: the checkpoint's step.
            tensors: its tensors.
            state: the rest of it.
            pinned: the step of another checkpoint to keep, that of the best model.
        """
        final, aside = self.path(step), self._aside(step)
        try:
            tensors.write(aside / TENSORS_FILE)
            text = json.dumps(msgspec.to_builtins(state)).encode()
            write_file(aside / STATE_FILE, text)
            best = aside / BEST / MANIFEST  # has the checksums of the files beside it
            sums = {f"{BEST}/{MANIFEST}": file_checksum(best)} if best.is_file() else {}
            seal(aside, {TENSORS_FILE: tensors.checksum(), STATE_FILE: checksum(text), **sums})
            if self.keep_every and state.number % self.keep_every == 0:
                (aside / KEEP_FILE).touch()
            sync(aside)
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
                return LoadedCheckpoint(step, *self.load(step))
            except CheckpointError as error:
                logger.warning("%s It is skipped.", error)
        return None

    def load(self, step: int) -> tuple[dict[str, Array], StoredState]:
        """Reads one checkpoint: its tensors and its state.

        Raises:
            CheckpointError: it is damaged, incomplete, or of a newer format.
        """
        path = self.path(step)
        if not path.is_dir():
            there = ", ".join(map(str, self.steps())) or "none"
            raise CheckpointError(f"There is no checkpoint of step {step} in {self.directory}. There are: {there}.")
        tensors, state = read_checkpoint(path)
        if state.progress.get("step", step) != step:
            raise CheckpointError(
                f"The checkpoint {path} cannot be read: it is that of step {state.progress['step']}, renamed."
            )
        if self.run and state.run and state.run != self.run:
            raise CheckpointError(f"The checkpoint {path} cannot be used: it belongs to another run.")
        return tensors, state

    def discard_after(self, step: int) -> None:
        """Sets later checkpoints aside, because the run resumes from this one; the next checkpoint removes them."""
        for later in self.steps():
            if later > step and self._set_aside(later):
                logger.warning("The checkpoint of step %d is set aside; it is removed with the next checkpoint.", later)

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
            run = json.loads(_plain_file(path / STATE_FILE, MOST_STATE_BYTES).read_bytes()).get("run", "")
        except (OSError, ValueError, AttributeError, RecursionError):
            run = ""  # damaged
        return not run or not self.run or run == self.run

    def _recover(self, path: Path) -> None:
        """Repairs what a crash left of this checkpoint, unless foreign files are in it."""
        if all(_only_ours(self.directory / f".{path.name}.{end}") for end in ("new", "old")):
            recover_directory(path)

    def failure(self, step: int, error: OSError) -> CheckpointError:
        """The error of a checkpoint that cannot be written."""
        reason = error.strerror or str(error)
        return CheckpointError(f"Cannot write the checkpoint {self.path(step)}: {reason}. {self.last_good()}")


def read_checkpoint(path: Path) -> tuple[dict[str, Array], StoredState]:
    """Reads a checkpoint of any name and any run.

    Raises:
        CheckpointError: it is damaged, incomplete, or of a newer format.
    """
    try:
        text = _plain_file(path / STATE_FILE, MOST_STATE_BYTES).read_bytes()
        verify(path / STATE_FILE, text)
        state = _read(json.loads(text))
        tensors = read_tensors(_plain_file(path / TENSORS_FILE))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CheckpointError(f"The checkpoint {path} cannot be read: {reason}.") from error
    _check_entries(path, tensors, state)
    return tensors, state


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


def _read(data: Any) -> StoredState:
    number = data.get("format") if isinstance(data, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ValueError(f"{STATE_FILE} has no format number")
    if number not in READERS:
        newest = max(READERS)
        raise ValueError(f"it has format {number}; this version of Scena reads up to {newest}. Update Scena")
    try:
        return READERS[number](data)
    except msgspec.ValidationError as error:
        raise ValueError(f"{STATE_FILE} is not the state of a training: {error}") from error


def _check_entries(path: Path, tensors: dict[str, Array], state: StoredState) -> None:
    entries = {entry.key: entry for entry in state.variables}
    if len(entries) != len(state.variables) or set(entries) - set(tensors):
        raise CheckpointError(
            f"The checkpoint {path} cannot be read: {STATE_FILE} and {TENSORS_FILE} name different variables."
        )
    for key, entry in entries.items():
        if tuple(entry.shape) != tensors[key].shape:
            raise CheckpointError(
                f"The checkpoint {path} cannot be read: the shape of {key} differs from that in {STATE_FILE}."
            )


def _plain_file(path: Path, most: int | None = None) -> Path:
    """The path, if it is a regular file: a link could lead anywhere, and reading a pipe never ends."""
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path.name} is not a plain file")
    if most is not None and found.st_size > most:
        raise ValueError(f"{path.name} has {found.st_size} bytes, more than any state can have ({most})")
    return path
