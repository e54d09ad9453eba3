"""TensorBoard's writers on a disk that may be full: events get lost then, with a warning, and never a training.

A record that was cut off would hide all after it from TensorBoard, so it is removed, and writing goes on in a new file.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import tensorflow as tf

from scena.training.checkpoint.event_files import remove_half_written

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
"""What TensorFlow raises for a disk that cannot be written."""


class EventWriters:
    """A writer for each curve, made when it is first used.

    Args:
        directory: each writes into the folder of its name in there.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._writers: dict[str, Any] = {}
        self._failed: set[str] = set()

    @contextmanager
    def writing(self, name: str, *, flush: bool = True) -> Iterator[None]:
        """Summaries inside the block go to this writer, or nowhere if it cannot be written.

        Args:
            name: the writer.
            flush: write to the disk at once. Without it, a writer that has failed is not tried again.
        """
        writer = self._writer(name) if flush or name not in self._failed else None
        try:
            with nullcontext() if writer is None else writer.as_default():
                yield
            if writer is not None and flush:
                writer.flush()
                self._worked(name)
        except DISK_ERRORS as error:
            self._give_up(name, error)

    def flush(self) -> None:
        """Writes what is still in memory."""
        for name in list(self._writers):
            with self.writing(name):
                pass

    def close(self) -> None:
        """Closes the files."""
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
            remove_half_written(self.directory / name)
        if not self._failed:
            logger.warning(
                "Cannot write TensorBoard's events to %s: %s. The training goes on; its curves will have a gap.",
                self.directory / name,
                reason(error),
            )
        self._failed.add(name)

    def _worked(self, name: str) -> None:
        if name in self._failed:
            self._failed.remove(name)
            if not self._failed:
                logger.info("TensorBoard's events can be written again.")


def reason(error: Exception) -> str:
    """What the system says, without what TensorFlow puts around it."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = str(getattr(error, "message", error)).splitlines()[0]
    return first.rpartition("; ")[2] or type(error).__name__
