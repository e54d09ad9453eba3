"""Where data is: a path of this machine, or any address that fsspec or TensorFlow opens (https://, s3://, zip://…::…).

Paths of this machine stay `pathlib.Path`; an address becomes a path of universal-pathlib, which has the same methods. Neither
that package nor fsspec is loaded before an address is used.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from scena.errors import DataError

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
        problem = f"{str(folder)!r} cannot be written: {error}"
        raise DataError(f"{problem}. Write to a folder of this machine, and copy or pack it.") from None


def send_folder(source: Path, target: Any) -> None:
    """Copies the files of a folder to an address; the files that describe them last, so that an incomplete copy is recognized."""
    files = sorted(source.iterdir(), key=lambda file: (file.suffix == ".json", file.name))
    try:
        target.fs.makedirs(target.path, exist_ok=True)
        for file in files:
            target.fs.put_file(str(file), (target / file.name).path)
    except Exception as error:
        raise DataError(f"Sending {source.name!r} to {str(target)!r} failed: {error}.") from None


def remove_folder(folder: Any) -> None:
    try:
        folder.fs.rm(folder.path, recursive=True)
    except Exception as error:
        raise DataError(f"{str(folder)!r} cannot be removed: {error}.") from None


_PROTOCOL = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*)(://|::)")
_PRIVATE = ("memory", "ram")
BLOCK = 1 << 18
_KEPT_BLOCKS = 64


class Location:
    """A path or an address as a user wrote it; a parameter of this type completes paths and keeps `//` as it is."""

    __slots__ = ("_text",)

    def __init__(self, text: "str | os.PathLike[str]") -> None:
        self._text = os.fspath(text)

    def __fspath__(self) -> str:
        return self._text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Location({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return os.fspath(other) == self._text if isinstance(other, str | os.PathLike) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)


def protocol_of(path: Any) -> str:
    """The protocol of an address, empty for a path of this machine."""
    if hasattr(path, "protocol"):
        return str(path.protocol)
    found = _PROTOCOL.match(os.fspath(path))
    return found[1].lower() if found else ""


def is_remote(path: Any) -> bool:
    """Whether a path, as `located` returns it, is an address."""
    return not isinstance(path, Path)


def only_here(*paths: Any) -> bool:
    """Whether one of some paths exists in this process only, so that worker processes cannot read it."""
    return any(path is not None and protocol_of(path) in _PRIVATE for path in paths)


def located(path: Any) -> Any:
    """A `pathlib.Path`, or for an address a path with the same methods; raises DataError if nothing installed opens it."""
    if isinstance(path, Path) or hasattr(path, "protocol"):
        return path
    text = os.fspath(path)
    protocol = protocol_of(text)
    if not protocol:
        return Path(text)
    if protocol in ("file", "local") and "::" not in text:
        return Path(text.partition("://")[2])
    try:
        import fsspec
        from upath import UPath
    except ImportError:
        raise DataError(
            f"{text!r} is an address, which needs the extra 'remote': pip install 'scena[remote]'."
        ) from None
    try:
        fsspec.get_filesystem_class(protocol)
    except (ValueError, ImportError) as error:
        from scena.storage.tensorflow_files import register_protocol

        if not register_protocol(protocol):
            also = f"TensorFlow does not know {protocol}:// either"
            raise DataError(f"{text!r} cannot be opened: {error}. {also}.") from None
    try:
        return UPath(text)
    except (OSError, ValueError, ImportError) as error:
        raise DataError(f"{text!r} cannot be opened: {_reason(error)}.") from None


def entries(folder: Any) -> list[tuple[Any, bool]]:
    """What lies in a folder, sorted by name, and whether each is a folder; without hidden files."""
    if not is_remote(folder):
        found = [(path, path.is_dir()) for path in folder.iterdir()]
    else:
        try:
            listed = folder.fs.ls(folder.path, detail=True)
        except (OSError, ValueError) as error:
            raise DataError(f"{str(folder)!r} cannot be listed: {_reason(error)}.") from None
        names = {item["name"].rstrip("/").rpartition("/")[2]: item["type"] == "directory" for item in listed}
        found = [(folder / name, is_folder) for name, is_folder in names.items() if name]
    return sorted((item for item in found if not item[0].name.startswith(".")), key=lambda item: item[0].name)


def files_below(folder: Any) -> list[tuple[str, Any]]:
    """All files in a folder and the folders in it: names relative to it (sorted), and paths. Hidden files are skipped."""
    if not is_remote(folder):
        found_here = ((where, file) for where, _, files in os.walk(folder, followlinks=True) for file in files)
        names = (os.path.relpath(os.path.join(where, file), folder) for where, file in found_here if file[0] != ".")
        return [(name, folder / name) for name in sorted(names)]
    found = []
    for path, is_folder in entries(folder):
        if is_folder:
            found += [(f"{unquoted(path)}/{name}", file) for name, file in files_below(path)]
        else:
            found.append((unquoted(path), path))
    return found


def unquoted(path: Any) -> str:
    """The last part of a path, readable: web addresses write a space as %20."""
    name = str(path.name)
    return unquote(name) if protocol_of(path) in ("http", "https") else name


def is_folder(path: Any) -> bool:
    """Whether there is a folder at a path; a web address that ends like a file is not asked for."""
    if is_remote(path) and path.suffix:
        return False
    try:
        return bool(path.is_dir())
    except (OSError, ValueError) as error:
        raise DataError(f"{str(path)!r} cannot be reached: {_reason(error)}.") from None


def beside(path: Any, ending: str) -> Any:
    return path.with_name(path.name + ending)


def read_bytes(path: Any) -> bytes:
    """The contents of a file; raises FileNotFoundError or another OSError."""
    if not is_remote(path):
        return bytes(path.read_bytes())
    try:
        return bytes(path.fs.cat_file(path.path))
    except OSError:
        raise
    except Exception as error:  # each file system has its own, a zip file's missing member is a KeyError
        raise OSError(None, _reason(error)) from None


def read_text(path: Any, what: str) -> str:
    """The UTF-8 text of a file; `what` names it in errors."""
    with reading(what):
        return read_bytes(path).decode("utf-8-sig")


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Converts errors of reading a UTF-8 text; `what` names the file in them."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{what} cannot be read: {reason_of(error)}.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{what} is not UTF-8 text: {error.reason} at byte {error.start}.") from None


def reason_of(error: OSError) -> str:
    """Why a file could not be read: the system's words, or those of a file system elsewhere."""
    return error.strerror or _reason(error)


def _reason(error: BaseException) -> str:
    text = str(error).strip().rstrip(".")
    return text if text and text != "None" else type(error).__name__


def state_of(path: Any) -> list[Any]:
    """What changes when a file changes: its size and its time, or what its file system reports instead."""
    if not is_remote(path):
        found = path.stat()
        return [found.st_size, found.st_mtime_ns]
    info = path.fs.info(path.path)
    keys = ("size", "mtime", "created", "LastModified", "Last-Modified", "ETag", "updated", "date_time")
    return [str(info.get(key)) for key in keys]


class RemoteBytes:
    """The bytes of a remote file, read a block at a time. fsspec keeps the last blocks; lengths are checked here."""

    def __init__(self, path: Any) -> None:
        from fsspec.caching import BlockCache

        self._fs, self._path, self._shown = path.fs, path.path, str(path)
        self._whole: bytes | None = None
        try:
            size = self._fs.info(self._path).get("size")
        except Exception as error:
            raise DataError(f"{self._shown!r} cannot be read: {_reason(error)}.") from None
        if size is None:  # a web server that does not report it
            self._whole = self._fetch(None, None)
            size = len(self._whole)
        self._size = int(size)
        self._blocks = BlockCache(BLOCK, self._range, self._size, _KEPT_BLOCKS)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: slice) -> bytes:
        start, stop, _ = place.indices(self._size)
        if self._whole is not None:
            return self._whole[start:stop]
        if stop - start >= BLOCK:
            return self._range(start, stop)
        return bytes(self._blocks._fetch(start, stop))

    def _range(self, start: int, stop: int) -> bytes:
        stop = min(stop, self._size)  # the last block may be shorter
        if start >= stop:
            return b""
        data = self._fetch(start, stop)
        if len(data) == self._size != stop - start:  # a web server without ranges sends everything
            self._whole = data
            return data[start:stop]
        if len(data) != stop - start:
            raise DataError(f"{self._shown!r}: asked for bytes {start} to {stop}, received {len(data)}.")
        return data

    def _fetch(self, start: int | None, stop: int | None) -> bytes:
        try:
            return bytes(self._fs.cat_file(self._path, start=start, end=stop))
        except Exception as error:
            raise DataError(f"{self._shown!r} cannot be read: {_reason(error)}.") from None
