"""Checksums (CRC32C) of what Scena writes, so that damage is reported and never becomes a result.

Files of a run, a checkpoint or an export have theirs in `checksums.json` of that directory. Files on their own (dumps, caches,
indices, the JSON beside records) hold their own; the functions for both are here. A file without a checksum is read without a check.
"""

import functools
import json
import logging
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from google_crc32c import extend

from scena.errors import ScenaError
from scena.storage.durable import link_or_copy, write_file
from scena.storage.run_layout import MANIFEST

logger = logging.getLogger(__name__)

IN_JSON = "checksum"
"""The entry of a JSON object that holds the checksum of the others."""
FORMAT = 1
_CHUNK = 4 << 20
"""The interpreter is held for the time that one chunk takes, a fraction of a millisecond."""
_MOST_BYTES = 64 << 20
_HEAD = 64


class DamagedFileError(ScenaError, ValueError):
    """A file is not what was written."""


class _Manifest(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    crc32c: dict[str, list[str]]
    """By the path inside the directory: the checksum of the file, then that of the file it replaced."""
    checksum: str = ""
    """That of the checksums themselves."""


def checksum(data: Any) -> str:
    """The checksum of bytes, or of a numpy array of bytes."""
    crc = 0
    for start in range(0, len(data), _CHUNK):
        crc = extend(crc, data[start : start + _CHUNK])
    return f"{crc:08x}"


def file_checksum(path: Path) -> str:
    """The checksum of a file's content."""
    crc = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            crc = extend(crc, chunk)
    return f"{crc:08x}"


def head_checksum(path: Path, size: int) -> str:
    """The checksum of the first few of `size` bytes, by which a file that grows is known again."""
    with path.open("rb") as file:
        return checksum(file.read(min(size, _HEAD)))


def known_checksum(path: Path) -> str:
    """The checksum of a file that is there: that of the manifest beside it, computed only if it has none."""
    found = _stored(path.parent, strict=False).get(path.name, [])
    return found[0] if len(found) == 1 else file_checksum(path)


def json_checksum(value: dict[str, Any]) -> str:
    """The checksum of a JSON object whatever its layout, without the entry that holds it."""
    rest = {key: item for key, item in value.items() if key != IN_JSON}
    return checksum(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())


def warn_if_json_changed(value: Any, path: object) -> None:
    """Warns if a JSON object is not the one its checksum was made of."""
    if isinstance(value, dict) and IN_JSON in value and value[IN_JSON] != json_checksum(value):
        _warn(str(path))


def write_checked(path: Path, content: str | bytes) -> None:
    """Writes a file and its checksum. A crash in between leaves either content with a checksum that fits."""
    data = content.encode() if isinstance(content, str) else content
    known = _stored(path.parent, strict=False)
    current = [file_checksum(path)] if path.is_file() else []
    known[path.name] = [checksum(data), *(value for value in current if value in known.get(path.name, []))]
    _write_manifest(path.parent, known)
    write_file(path, data)


def forget(path: Path) -> None:
    """Removes a file that `write_checked` wrote, and its checksum."""
    path.unlink(missing_ok=True)
    known = _stored(path.parent, strict=False)
    known.pop(path.name, None)
    if known:
        _write_manifest(path.parent, known)
    else:
        (path.parent / MANIFEST).unlink(missing_ok=True)


def seal(directory: Path, checksums: dict[str, str]) -> None:
    """Writes the manifest of a directory that is being assembled; `checksums` are those of its files, by their path inside it."""
    _write_manifest(directory, {name: [value] for name, value in checksums.items()})


def seal_tree(directory: Path) -> None:
    """Writes the manifest of a directory that is being assembled, with the checksums of all files below it."""
    seal(directory, tree_checksums(directory))


def add_checksums(directory: Path, checksums: dict[str, str], instead_of: Iterable[str] = ()) -> None:
    """Adds files to the manifest of a directory, if it has one; call it before they are put in place.

    `instead_of` are files and folders inside it that are replaced.
    """
    if not (directory / MANIFEST).exists():
        return
    known = _stored(directory, strict=False)
    gone = tuple(instead_of)
    kept = {name: values for name, values in known.items() if not any(_is_inside(name, place) for place in gone)}
    new = {name: [value, *known.get(name, [])[:1]] for name, value in checksums.items()}
    _write_manifest(directory, kept | new)


def tree_checksums(directory: Path, root: Path | None = None) -> dict[str, str]:
    """The checksums of all files in and below a directory or of one file, by their path inside `root`."""
    root = root or directory
    paths = [directory] if directory.is_file() else sorted(directory.rglob("*"))
    files = [path for path in paths if path.is_file() and path != root / MANIFEST]
    return {path.relative_to(root).as_posix(): file_checksum(path) for path in files}


def keep_foreign(directory: Path, aside: Path) -> None:
    """Copies the files that Scena did not write from a directory to `aside`, which replaces it.

    Without a readable manifest all files count as Scena's.
    """
    try:
        known = _stored(directory)
    except DamagedFileError:
        return
    if not known and not (directory / MANIFEST).exists():
        return
    for path in directory.rglob("*"):
        name = path.relative_to(directory).as_posix()
        if name not in known and name != MANIFEST and (path.is_symlink() or not path.is_dir()):
            target = aside / name
            if not os.path.lexists(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                link_or_copy(path, target)


def verify(path: Path, data: bytes | None = None) -> None:
    """Checks a file, or its content `data`, against the manifest beside it, if that has an entry for it.

    Raises DamagedFileError if the file or the manifest is damaged, OSError if it cannot be read.
    """
    _verify_entry(path.parent, path.name, _stored(path.parent), data)


def verify_tree(directory: Path, inside: str = "") -> None:
    """Checks all files that the manifest of a directory names in one of its folders, or in all; a missing one counts as damage.

    Raises as `verify`.
    """
    known = _stored(directory)
    for name in known:
        if _is_inside(name, inside):
            _verify_entry(directory, name, known)


def each_verified(directory: Path) -> Iterator[tuple[Path, str | None]]:
    """Each file that the manifest of a directory names, and what is wrong with it. Raises DamagedFileError if the manifest is damaged."""
    known = _stored(directory)
    for name in known:
        try:
            _verify_entry(directory, name, known)
        except (DamagedFileError, OSError) as error:
            yield directory / name, str(error)
        else:
            yield directory / name, None


def warn_if_changed(path: Path, data: bytes) -> None:
    """Warns if a file that people may edit is not what Scena wrote."""
    if checksum(data) not in _stored(path.parent, strict=False).get(path.name, [checksum(data)]):
        _warn(str(path))


@functools.cache
def _warn(path: str) -> None:
    """Warns once: a command may read a file several times."""
    logger.warning("%s is not as Scena wrote it: it was edited, or it is damaged. It is used as it is.", path)


def _verify_entry(directory: Path, name: str, known: dict[str, list[str]], data: bytes | None = None) -> None:
    expected = known.get(name)
    path = directory / name
    if expected is None:
        return
    if not path.is_file():
        raise DamagedFileError(f"{path} is missing, although {MANIFEST} names it")
    if (file_checksum(path) if data is None else checksum(data)) not in expected:
        manifest = directory / MANIFEST
        raise DamagedFileError(
            f"{path} is damaged, or belongs to something else: its checksum is not the one in {manifest}"
        )


def _is_inside(name: str, folder: str) -> bool:
    return not folder or name == folder or name.startswith(f"{folder}/")


def _stored(directory: Path, strict: bool = True) -> dict[str, list[str]]:
    """The checksums of a directory, none if it has no manifest; of a damaged one none or, if `strict`, an error."""
    path = directory / MANIFEST
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise ValueError("it is no plain file, or too large")
        manifest = msgspec.json.decode(path.read_bytes(), type=_Manifest)
        if manifest.format > FORMAT:
            raise ValueError(f"it has format {manifest.format}, this version of Scena reads up to {FORMAT}")
        if manifest.checksum not in ("", json_checksum(manifest.crc32c)):
            raise ValueError("it is damaged itself")
        return manifest.crc32c
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        if strict:
            problem = f"{path} cannot be read ({error}), so its directory cannot be checked"
            raise DamagedFileError(f"{problem}. Delete it to read without a check") from error
        logger.warning("%s cannot be read (%s): nothing in its directory can be checked.", path, error)
        return {}


def _write_manifest(directory: Path, checksums: dict[str, list[str]]) -> None:
    content = {"format": FORMAT, "crc32c": checksums, IN_JSON: json_checksum(checksums)}
    write_file(directory / MANIFEST, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
