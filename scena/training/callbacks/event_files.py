"""TensorBoard's event files: written on a disk that may be full, and truncated to their size at a checkpoint after a crash.

A full disk loses events, with a warning, and never ends a training. A half-written record would hide all events after it from
TensorBoard, so it is removed, and a new file continues. Only files found in the directory are touched, never a path that a
checkpoint names.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import tensorflow as tf

from scena.data.records.framing import OVERHEAD, RecordError, record_at
from scena.storage.checksums import head_checksum

logger = logging.getLogger(__name__)

DISK_ERRORS = (
    OSError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnknownError,
    tf.errors.InternalError,
    tf.errors.PermissionDeniedError,
    tf.errors.NotFoundError,
    tf.errors.FailedPreconditionError,
    tf.errors.UnavailableError,
    tf.errors.DataLossError,
)
"""Errors of a disk that cannot be written; TensorFlow has many."""


class EventWriters:
    """A writer for each curve, in the folder of its name, created when it is first used."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._writers: dict[str, Any] = {}
        self._failed: set[str] = set()

    @contextmanager
    def writing(self, name: str, *, flush: bool = True) -> Iterator[None]:
        """Summaries inside the block go to this writer, or nowhere if it cannot be written.

        Args:
            flush: write to the disk at once. Without it, a writer that has failed is not tried again.
        """
        writer = self._writer(name) if flush or name not in self._failed else None
        try:
            with nullcontext() if writer is None else writer.as_default():
                yield
            if writer is not None and flush:
                writer.flush()
                self._recovered(name)
        except DISK_ERRORS as error:
            self._give_up(name, error)

    def flush(self) -> None:
        """Writes what is still in memory."""
        for name in list(self._writers):
            with self.writing(name):
                pass

    def close(self) -> None:
        """Flushes and closes all files."""
        self.flush()
        for writer in self._writers.values():
            with suppress(*DISK_ERRORS):
                writer.close()
        self._writers.clear()

    def _writer(self, name: str) -> Any:
        if name not in self._writers:
            try:
                self._writers[name] = tf.summary.create_file_writer(str(self.directory / name))
            except DISK_ERRORS as error:
                self._give_up(name, error)
        return self._writers.get(name)

    def _give_up(self, name: str, error: Exception) -> None:
        writer = self._writers.pop(name, None)
        with suppress(*DISK_ERRORS):
            if writer is not None:
                writer.close()
        del writer
        with suppress(OSError):
            _remove_half_written(self.directory / name)
        if not self._failed:
            logger.warning(
                "Cannot write TensorBoard's events to %s: %s. The training continues; its curves will have a gap.",
                self.directory / name,
                disk_reason(error),
            )
        self._failed.add(name)

    def _recovered(self, name: str) -> None:
        if name in self._failed:
            self._failed.remove(name)
            if not self._failed:
                logger.info("TensorBoard's events can be written again.")


def disk_reason(error: Exception) -> str:
    """The system's message, without what TensorFlow adds to it."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = str(getattr(error, "message", error)).splitlines()[0]
    return first.rpartition("; ")[2] or type(error).__name__


def event_sizes(directory: Path) -> dict[str, int]:
    """The size of each event file below a directory, by its path inside it."""
    return {path.relative_to(directory).as_posix(): path.stat().st_size for path in _event_files(directory)}


def event_heads(directory: Path) -> dict[str, str]:
    """The checksum of the beginning of each event file, which has the time when it was created, by its path inside the directory."""
    files = list(_event_files(directory))
    return {path.relative_to(directory).as_posix(): head_checksum(path, path.stat().st_size) for path in files}


def cut_back(directory: Path, sizes: dict[str, int]) -> None:
    """Removes what was written after the sizes were taken, so that a resumed run writes nothing twice."""
    found = set()
    for path in _event_files(directory):
        name = path.relative_to(directory).as_posix()
        size = sizes.get(name)
        found.add(name)
        if size is None:
            path.unlink()
        elif path.stat().st_size > size:
            os.truncate(path, size)
        elif path.stat().st_size < size:
            logger.warning("%s is shorter than at the checkpoint: curves in TensorBoard will have a gap.", path)
    for name in sorted(set(sizes) - found):
        logger.warning("TensorBoard's %s is missing: its curves start at the checkpoint.", name)


def _remove_half_written(folder: Path) -> None:
    """Truncates the newest event file of a folder after its last complete record; removes it if it has none."""
    newest = max(_event_files(folder), key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None:
        return
    data, offset = newest.read_bytes(), 0
    with suppress(RecordError):
        while offset < len(data):
            offset += OVERHEAD + len(record_at(data, offset, str(newest)))
    if offset == 0:
        newest.unlink()
    elif offset < len(data):
        os.truncate(newest, offset)


def _event_files(directory: Path) -> Iterator[Path]:
    if directory.is_symlink():
        return
    for folder, _, files in os.walk(directory, followlinks=False):
        for name in sorted(files):
            path = Path(folder, name)
            if "tfevents" in name and path.is_file() and not path.is_symlink():
                yield path
