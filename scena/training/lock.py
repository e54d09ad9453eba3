"""A lock on the directory of a run: two processes must not train in it at once, and a crash must not leave it locked."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scena.training.errors import TrainingError

LOCK = ".lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Holds the lock while the block runs. The system takes it back when the process ends, however it ends."""
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
            raise TrainingError(
                f"{directory} is in use: {owner} trains in it. Wait until it has ended, or stop it."
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
