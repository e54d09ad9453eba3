"""Predictions on disk, to be evaluated later without the model: JSON lines, read and written one sample at a time.

The first line describes the file; each further line is one predicted sample of one model. An array is an object with its type, its
shape and its bytes in base64 (`$array`), so that it comes back exactly; everything else is plain JSON. `.gz` at the end of the
name compresses the file. Each line ends with the checksum of all text up to there (`$crc32c`), and the last line says how many
samples there were, so that no damage goes unnoticed.
"""

import base64
import gzip
import json
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

import numpy as np
from google_crc32c import extend

from scena.data.sample import Sample
from scena.data.spec import numpy_dtype
from scena.errors import ScenaError

FORMAT = "scena-dump"
VERSION = 1
CHECKSUM = "$crc32c"
MOST_LINE = 1 << 30
_ENDING = re.compile(rb',?"\$crc32c":"([0-9a-f]{8})"\}\n?$')
_PARTS = ("inputs", "targets", "outputs", "meta")


class DumpError(ScenaError, ValueError):
    """A file is not a dump, or a sample cannot be written to one."""


class DumpWriter:
    """Writes predicted samples to a dump; the header, for example scenario and models, goes into the first line. Use it in a `with`
    block.
    """

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        self._header = {"format": FORMAT, "version": VERSION, **header}
        self._file: IO[bytes] | None = None
        self._crc = self._count = 0

    def __enter__(self) -> Self:
        try:
            self._file = _open(self.path, "wb")
        except OSError as error:
            raise DumpError(f"Cannot write the dump {self.path}: {error.strerror or error}.") from error
        self._write(self._header)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            if kind is None:
                self._write({"$end": self._count})
            self._file.close()

    def write(self, sample: Sample, model: str = "", data: str = "") -> None:
        """Writes what a sample holds, with the names of the model and of the part of the data it belongs to, where there are
        several.
        """
        record: dict[str, Any] = {"model": model} if model else {}
        if data:
            record["data"] = data
        for part in _PARTS:
            value = getattr(sample, part)
            if value is not None:
                record[part] = to_json(value)
        self._write(record)
        self._count += 1

    def _write(self, record: dict[str, Any]) -> None:
        assert self._file is not None, "DumpWriter is used in a `with` block"
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
        self._crc = extend(self._crc, text)
        self._file.write(text + b'%s"$crc32c":"%08x"}\n' % (b"," if record else b"", self._crc))


def read_header(path: Path) -> dict[str, Any]:
    """The first line of a dump, checked."""
    with _reading(path) as file:
        return _header(_lines(file, path), path)[0]


def read_dump(path: Path) -> Iterator[tuple[str, str, Sample]]:
    """The samples of a dump, one at a time: (model, data, sample)."""
    with _reading(path) as file:
        lines = _lines(file, path)
        checked = CHECKSUM in _header(lines, path)[1]
        number = 1
        for number, line in enumerate(lines, 2):
            try:
                record = json.loads(line)
                if checked and CHECKSUM not in record:
                    raise ValueError("it has no checksum")
                if "$end" in record:
                    if record["$end"] != number - 2:
                        raise ValueError(f"there should be {record['$end']} samples before it")
                    checked = False
                    continue
                sample = Sample(**{part: from_json(record[part]) for part in _PARTS if part in record})
                found = record.get("model", ""), record.get("data", ""), sample
                if not isinstance(found[0], str) or not isinstance(found[1], str):
                    raise ValueError("the name of its model or of its data is not text")
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
                raise _damaged(path, number, error) from error
            yield found
        if checked:
            raise _damaged(path, number + 1, "the file ends here")


def _damaged(path: Path, number: int, reason: object) -> DumpError:
    return DumpError(f"{path}, line {number} is damaged: {reason}. Was the dump written to its end?")


def _lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """The lines of a dump; those with a checksum are checked."""
    crc = number = 0
    try:
        for number, line in enumerate(iter(lambda: file.readline(MOST_LINE), b""), 1):
            if len(line) == MOST_LINE:
                raise _damaged(path, number, f"it is longer than {MOST_LINE} bytes")
            if (found := _ENDING.search(line)) is not None:
                crc = extend(crc, line[: found.start()])
                if int(found[1], 16) != crc:
                    raise _damaged(path, number, "its checksum, or that of a line before it, is wrong")
            yield line
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(path, number + 1, error) from error


def to_json(value: Any) -> Any:
    """A value as JSON; arrays and numpy numbers keep their type, shape and every bit."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        entry: dict[str, Any] = {"dtype": array.dtype.str if array.dtype.kind != "V" else array.dtype.name}
        entry["shape"] = list(array.shape)
        if array.dtype.kind == "O":
            return {"$array": [to_json(item) for item in array.flat], **entry}
        return {"$array": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii"), **entry}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        reserved = [key for key in value if key in ("$array", "$bytes") or not isinstance(key, str)]
        if reserved:
            raise DumpError(
                f"A dump cannot hold a dict with the key {reserved[0]!r}: keys must be other strings. Rename it."
            )
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no such numbers
        return to_json(np.float64(value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    raise DumpError(
        f"A dump cannot hold a {type(value).__name__}. Make it an array, a number, a text, a list or a dict in LAV.extract_dump_data."
    )


def from_json(value: Any) -> Any:
    """The value that `to_json` wrote."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$bytes" in value:
        return base64.b64decode(value["$bytes"])
    if "$array" not in value:
        return {key: from_json(item) for key, item in value.items()}
    shape, dtype = tuple(value["shape"]), numpy_dtype(value["dtype"])
    if dtype.kind == "O":
        objects = np.empty(len(value["$array"]), object)
        objects[:] = [from_json(item) for item in value["$array"]]
        return objects.reshape(shape)
    array = np.frombuffer(base64.b64decode(value["$array"]), dtype).reshape(shape)
    return array[()] if shape == () else array


def _open(path: Path, mode: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode))


def _reading(path: Path) -> IO[bytes]:
    try:
        return _open(path, "rb")
    except OSError as error:
        raise DumpError(f"Cannot read the dump {path}: {error.strerror or error}.") from error


def _header(lines: Iterator[bytes], path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was noted in the first line, and the line itself."""
    try:
        header = json.loads(next(lines, b""))
    except (ValueError, RecursionError) as error:
        raise DumpError(f"{path} is not a dump of `scena lav --dump`: {error}.") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DumpError(f"{path} is not a dump of `scena lav --dump`: its first line does not say {FORMAT!r}.")
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise DumpError(
            f"{path} has version {header.get('version')!r}; this Scena reads up to {VERSION}. Update Scena."
        )
    return {name: value for name, value in header.items() if name != CHECKSUM}, header
