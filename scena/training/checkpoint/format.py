"""The files of one checkpoint: tensors as safetensors, everything else as JSON that is checked against a schema.

Nothing in a checkpoint is ever executed.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from scena.errors import CheckpointError
from scena.storage.checksums import checksum, file_checksum, seal, verify
from scena.storage.durable import sync, sync_tree, write_file
from scena.storage.json_text import exact_json, from_exact_json
from scena.storage.run_layout import BEST, KEEP_FILE, MANIFEST, STATE_FILE, TENSORS_FILE
from scena.storage.tensor_file import Array, TensorBuffer, read_tensors

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
    samples: dict[str, int] = {}
    """How many samples training and validation had, where their sources know it."""


def _read_1(data: dict[str, Any]) -> StoredState:
    return msgspec.convert(data, StoredState)


READERS: dict[int, Callable[[dict[str, Any]], StoredState]] = {1: _read_1}
"""A reader for each format ever written; a new format adds one and keeps the others."""


class LoadedCheckpoint(NamedTuple):
    """A checkpoint that was read."""

    step: Any
    """Its step as it was stored; a number once a store has checked it."""
    tensors: dict[str, Array]
    state: StoredState


def write_checkpoint(directory: Path, tensors: TensorBuffer, state: StoredState, *, keep: bool) -> None:
    """Writes the files of a checkpoint into an existing directory; `keep` marks it as permanent."""
    tensors.write(directory / TENSORS_FILE)
    text = exact_json(msgspec.to_builtins(state)).encode()
    write_file(directory / STATE_FILE, text)
    best = directory / BEST / MANIFEST  # has the checksums of the files beside it
    sums = {f"{BEST}/{MANIFEST}": file_checksum(best)} if best.is_file() else {}
    seal(directory, {TENSORS_FILE: tensors.checksum(), STATE_FILE: checksum(text), **sums})
    if keep:
        (directory / KEEP_FILE).touch()
    if best.is_file():
        sync_tree(best.parent)
    sync(directory)


def read_checkpoint(path: Path) -> LoadedCheckpoint:
    """Reads a checkpoint of any name and any run.

    Raises:
        CheckpointError: it is damaged, incomplete, or of a newer format.
    """
    try:
        text = plain_file(path / STATE_FILE, MOST_STATE_BYTES).read_bytes()
        verify(path / STATE_FILE, text)
        state = _read(from_exact_json(text))
        tensors = read_tensors(plain_file(path / TENSORS_FILE))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CheckpointError(f"The checkpoint {path} cannot be read: {reason}.") from error
    _check_entries(path, tensors, state)
    return LoadedCheckpoint(state.progress.get("step"), tensors, state)


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


def plain_file(path: Path, most: int | None = None) -> Path:
    """The path, if it is a regular file: a link could lead anywhere, and reading a pipe never ends.

    Raises:
        ValueError: it is none, or it is larger than `most`.
    """
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path.name} is not a plain file")
    if most is not None and found.st_size > most:
        raise ValueError(f"{path.name} has {found.st_size} bytes, more than any state can have ({most})")
    return path
