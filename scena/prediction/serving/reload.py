"""Notices that an export was replaced, loads the new model beside the old one, and lets it take over between two batches."""

import ctypes
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scena.errors import first_line
from scena.storage.run_layout import CONVERTED_FILE, EXPORT_FILE, MANIFEST

logger = logging.getLogger(__name__)

Stamp = list[tuple[int, int, int] | None]


class Reloader:
    """Watches exports in a thread of its own. A model that cannot be loaded is reported, and the old one stays.

    Args:
        directories: the exports.
        stamp: what `look` found before the model in service was loaded.
        load: loads them.
        replace: puts what was loaded into service.
        every: seconds between two looks.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        stamp: Stamp,
        load: Callable[[], Any],
        replace: Callable[[Any], None],
        every: float,
    ) -> None:
        self._directories = list(directories)
        self._load = load
        self._replace = replace
        self._every = every
        self._stamp = stamp
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="scena-reload", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        seen, loaded = self._stamp, False
        while not self._end.wait(self._every):
            if loaded:  # by now, no batch uses the old model
                return_freed_memory()
                loaded = False
            now = look(self._directories)
            # an export appears as a whole, but several are replaced one after the other, and files are added to one
            if now != self._stamp and now == seen and None not in now[::3]:
                self._stamp = now
                self._reload()
                loaded = True
            seen = now

    def _reload(self) -> None:
        names = ", ".join(map(str, self._directories))
        try:
            loaded = self._load()
            if look(self._directories) != self._stamp:  # replaced once more meanwhile: it may be of both
                return
            self._replace(loaded)
        except Exception as error:  # the scenario's code may raise anything
            logger.error(
                "%s was replaced, but cannot be loaded; the model before it stays: %s", names, first_line(error)
            )
        else:
            logger.info("%s was replaced; the new model is in service.", names)


def return_freed_memory() -> None:
    """Lets the system have what the old model took. The C library would keep it in pieces, and grow a little with each model."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # glibc has it
        trim(0)


def look(directories: Sequence[Path]) -> Stamp:
    """What tells a replaced export from the one before it."""
    names = (EXPORT_FILE, MANIFEST, CONVERTED_FILE)
    return [_stamp(directory / name) for directory in directories for name in names]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
