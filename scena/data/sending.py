"""Writing to an address: files are made on this machine and sent when they are complete."""

from pathlib import Path
from typing import Any

from scena.data.errors import DataError
from scena.data.location import protocol_of

_READ_ONLY = ("http", "https", "zip", "tar", "libarchive", "data", "github", "git")


def check_writable(folder: Any) -> None:
    """Raises DataError at once if nothing can be written to an address, instead of after hours of work.

    It writes an empty file and removes it.
    """
    probe = folder / ".scena-probe"
    try:
        if protocol_of(folder) in _READ_ONLY:
            raise PermissionError(f"{protocol_of(folder)}:// can be read only")
        folder.fs.makedirs(folder.path, exist_ok=True)
        probe.fs.pipe_file(probe.path, b"")
        probe.fs.rm_file(probe.path)
    except Exception as error:  # each file system has its own errors
        raise DataError(
            f"{str(folder)!r} cannot be written: {error}. Write to a folder of this machine, and copy or pack it."
        ) from None


def send_folder(source: Path, target: Any) -> None:
    """Copies the files of a folder to an address; what describes them comes last, so that a part is never taken for all."""
    files = sorted(source.iterdir(), key=lambda file: (file.suffix == ".json", file.name))
    try:
        target.fs.makedirs(target.path, exist_ok=True)
        for file in files:
            target.fs.put_file(str(file), (target / file.name).path)
    except Exception as error:
        raise DataError(f"Sending {source.name!r} to {str(target)!r} failed: {error}.") from None


def remove_folder(folder: Any) -> None:
    """Removes all that lies at an address."""
    try:
        folder.fs.rm(folder.path, recursive=True)
    except Exception as error:
        raise DataError(f"{str(folder)!r} cannot be removed: {error}.") from None
