"""Truncates TensorBoard's event files to their size at a checkpoint, after a crash.

Only files found in the directory are touched, never a path that a checkpoint names.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from scena.data.records.framing import OVERHEAD, RecordError, record_at

logger = logging.getLogger(__name__)


def event_sizes(directory: Path) -> dict[str, int]:
    """The size of each event file below a directory, by its path inside it."""
    return {path.relative_to(directory).as_posix(): path.stat().st_size for path in _event_files(directory)}


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


def remove_half_written(folder: Path) -> None:
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
