"""The directory of a run: its paths, its lock and its log file."""

import contextlib
import fcntl
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scena.errors import TrainingError
from scena.logs import VisibleFormatter, shown_log
from scena.storage.checksums import forget
from scena.storage.run_layout import (
    BEST,
    CHECKPOINTS,
    DIRECTORIES,
    EXPORT,
    HISTORY_FILE,
    LOCK_FILE,
    LOG_FILE,
    PARAMS_FILE,
    RUNS,
)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Holds the lock while the block runs. The system releases it when the process ends, however it ends."""
    handle = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
            raise TrainingError(
                f"{directory} is in use: {owner} trains in it. Wait until it ends, or stop it."
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


MARKS = (PARAMS_FILE, CHECKPOINTS, BEST, EXPORT, HISTORY_FILE)
"""Files that show that a directory already holds a run."""


def default_directory(scenario_name: str) -> Path:
    """`runs/NAME-TIME`, with a number if it exists."""
    module, _, name = scenario_name.partition(":")
    parts = [part for part in module.split(".") if part != "scenario"]
    stem = f"{RUNS}/{parts[-1] if parts else name}-{time.strftime('%Y%m%d-%H%M%S')}"
    candidates = (Path(stem if number == 1 else f"{stem}-{number}") for number in range(1, 1000))
    return next(path for path in candidates if not path.exists())


def settle_paths(directory: Path, params: Any, before: Any = None) -> None:
    """Converts paths relative to the current folder into those that are stored.

    Args:
        directory: the run's directory.
        params: its parameters; changed in place.
        before: the stored parameters, whose paths are converted already.
    """
    for name in DIRECTORIES:
        path = getattr(params, name)
        if path is None or (before is not None and getattr(before, name, None) == path):
            continue
        path = path.absolute()
        inside = directory.absolute()
        setattr(params, name, path.relative_to(inside) if path.is_relative_to(inside) else path)


def refuse_used_directory(directory: Path) -> None:
    """Refuses the directory of another run.

    Raises:
        TrainingError: it holds a run already.
    """
    found = [mark for mark in MARKS if (directory / mark).exists()]
    if found:
        raise TrainingError(
            f"{directory} already holds a run ({', '.join(found)}). Choose another --trainer.output_dir, "
            f"continue it with `scena resume {directory}`, or delete it."
        )


def create_directory(directory: Path) -> None:
    """Creates the directory of a new run; refuses one that holds a run already."""
    refuse_used_directory(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / ".writable"
        probe.write_bytes(b"scena")
        probe.unlink()
    except OSError as error:
        raise TrainingError(
            f"Cannot write to the output directory {directory}: {error.strerror or error}. Choose another --trainer.output_dir."
        ) from error


def withdraw(directory: Path) -> None:
    """Removes the parameters of a run that failed before its first step, so that the command can be retried."""
    forget(directory / PARAMS_FILE)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


class _LogFile(logging.FileHandler):
    """A log file that reports once that it cannot be written, and never ends a training because of it."""

    _failed = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def _open(self) -> Any:
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=_no_link)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        if not self._failed:
            self._failed = True
            sys.stderr.write(f"Cannot write {self.baseFilename}: {sys.exc_info()[1]}\n")

    def close(self) -> None:
        """Closes the file; errors were reported before."""
        with contextlib.suppress(OSError):
            super().close()


@contextmanager
def log_file(directory: Path) -> Iterator[None]:
    """Copies Scena's log to `train.log` while the block runs."""
    directory.mkdir(parents=True, exist_ok=True)
    handler = _LogFile(directory / LOG_FILE, encoding="utf-8", delay=True)
    handler.setFormatter(VisibleFormatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("scena")
    log.addHandler(handler)
    try:
        with shown_log():
            yield
    finally:
        log.removeHandler(handler)
        handler.close()
