"""The run registry of a sheet: the status of each run in a small file, and locks of those that still run."""

import fcntl
import json
import os
from pathlib import Path

import msgspec

from scena.errors import ExperimentError
from scena.storage.checksums import IN_JSON, json_checksum, warn_if_json_changed
from scena.storage.durable import make_directory, write_file

STARTED, DONE, FAILED, STOPPED = "started", "done", "failed", "stopped"


class Entry(msgspec.Struct):
    """The last attempt at a run."""

    words: list[str]
    """The command line as the sheet had it."""
    status: str = STARTED
    exit: int | None = None
    seconds: float = 0.0
    attempts: int = 1
    directory: str | None = None
    run: str = ""
    """The identity of the run in the sheet."""


class RunRegistry:
    """The records of a sheet's runs in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def read(self, key: str) -> Entry | None:
        """The record of a run; None if it has never been started."""
        path = self._path(key)
        try:
            value = msgspec.json.decode(path.read_bytes())
            warn_if_json_changed(value, path)
            entry = msgspec.convert(value, Entry)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise ExperimentError(f"Cannot read {path}: {error}. Remove it to start this run again.") from error
        if entry.run not in ("", key):
            raise ExperimentError(f"{path} belongs to the run {entry.run}. Remove it to start this run again.")
        return entry

    def write(self, key: str, entry: Entry) -> None:
        """Stores the record of a run."""
        make_directory(self.directory)
        value = {**msgspec.structs.asdict(entry), "run": key}
        write_file(self._path(key), json.dumps({**value, IN_JSON: json_checksum(value)}, indent=1) + "\n")

    def remove(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def lock(self, key: str) -> int | None:
        """A file descriptor that holds the lock of a run, to be handed to its process; None if it is taken.

        The lock is free again when the last process that inherited it has ended, so a run that outlived its scheduler is
        never started a second time.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.directory / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}.json"
