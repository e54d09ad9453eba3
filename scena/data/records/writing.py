"""Writing values as sharded records with a schema beside them. Files are written aside and renamed."""

import contextlib
import json
import os
import tempfile
import zlib
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from scena.data.records.files import index_checksum, index_path, last_bytes
from scena.data.records.framing import OVERHEAD, frame
from scena.data.records.record_set import find_schema, shard_name
from scena.data.records.schema import SCHEMA_FILE, Schema
from scena.errors import DataError
from scena.storage.checksums import IN_JSON, json_checksum, write_checked
from scena.storage.durable import make_directory, sync
from scena.storage.location import check_writable, entries, is_folder, is_remote, located, reason_of, send_folder

COMPRESSIONS = ("", "GZIP", "ZLIB")
BLOCK_SIZE = 1 << 18
"""Uncompressed bytes between two positions where reading a compressed file can start."""
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # no name and no time: equal records give equal files
_ZLIB_HEADER = b"\x78\x9c"


class ShardWriter:
    """Writes one record file. It appears under its name, with its index, when the `with` block ends without an error.

    Of several, `finish` each one first: what can fail then is over before the first one appears.
    """

    def __init__(self, path: str | Path, compression: str = "") -> None:
        self.path = Path(path)
        self.count = 0
        self._entries: list[tuple[int, int]] = []
        self._temporary = self.path.with_name(f".{self.path.name}.writing-{os.getpid()}")
        self._temporary_index = self.path.with_name(f".{self.path.name}.index.writing-{os.getpid()}")
        self._finished = False
        try:
            self._sink = _open_sink(self._temporary, compression)
        except OSError as error:
            raise unwritable(self.path, error) from None

    def write(self, data: bytes) -> None:
        """Appends one record."""
        try:
            self._entries.append(self._sink.write(frame(data)))
        except OSError as error:
            raise unwritable(self.path, error) from None
        self.count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: BaseException | TracebackType | None) -> None:
        if kind is not None:
            self.discard()
            return
        try:
            self.close()
        except BaseException:
            self.discard()
            raise

    def finish(self) -> None:
        """Writes all there is to write, aside."""
        if self._finished:
            return
        try:
            self._sink.close()
            with self._temporary_index.open("wb") as file:
                rows = np.array([*self._entries, (self._sink.size, 0)], np.int64)
                rows[-1, 1] = index_checksum(rows, last_bytes(self._temporary))
                np.save(file, rows, allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise unwritable(self.path, error) from None
        self._finished = True

    def close(self) -> None:
        """Completes the file and gives it its name."""
        self.finish()
        os.replace(self._temporary_index, index_path(self.path))
        os.replace(self._temporary, self.path)
        sync(self.path.parent)

    def discard(self) -> None:
        """Removes what was written."""
        with contextlib.suppress(OSError):  # a full disk cannot take what is about to be removed
            self._sink.file.close()
        self._temporary.unlink(missing_ok=True)
        self._temporary_index.unlink(missing_ok=True)


def unwritable(path: Any, error: OSError) -> DataError:
    return DataError(f"{str(path)!r} cannot be written: {reason_of(error)}.")


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, where they are missing."""
    try:
        make_directory(folder)
    except OSError as error:
        raise unwritable(folder, error) from None


class Sink:
    """Frames one after the other. An index row is (offset, 0)."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = 0

    def write(self, parts: tuple[bytes, bytes, bytes]) -> tuple[int, int]:
        """Writes a frame; returns its index row."""
        row = (self.size, 0)
        self.file.writelines(parts)
        self.size += OVERHEAD + len(parts[1])
        return row

    def close(self) -> None:
        """Completes the file."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


class CompressedSink(Sink):
    """Frames in a deflate stream that starts afresh at each block. A row is (start of the block, offset within it)."""

    def __init__(self, file: BinaryIO, compression: str) -> None:
        super().__init__(file)
        self._gzip = compression == "GZIP"
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._check = 0 if self._gzip else 1
        self._total = self._within = 0
        self._append(_GZIP_HEADER if self._gzip else _ZLIB_HEADER)
        self._block = self.size

    def _append(self, data: bytes) -> None:
        self.size += self.file.write(data)

    def write(self, parts: tuple[bytes, bytes, bytes]) -> tuple[int, int]:
        row = (self._block, self._within)
        data = b"".join(parts)
        self._check = (zlib.crc32 if self._gzip else zlib.adler32)(data, self._check)
        self._append(self._deflate.compress(data))
        self._total += len(data)
        self._within += len(data)
        if self._within >= BLOCK_SIZE:
            self._append(self._deflate.flush(zlib.Z_FULL_FLUSH))
            self._block, self._within = self.size, 0
        return row

    def close(self) -> None:
        self._append(self._deflate.flush())
        if self._gzip:
            self._append(self._check.to_bytes(4, "little") + (self._total & 0xFFFFFFFF).to_bytes(4, "little"))
        else:
            self._append(self._check.to_bytes(4, "big"))
        super().close()


def _open_sink(path: Path, compression: str) -> Sink:
    if compression not in COMPRESSIONS:
        raise DataError(f"compression is one of {', '.join(map(repr, COMPRESSIONS))}. Received: {compression!r}.")
    file = path.open("wb", buffering=1 << 20)
    return CompressedSink(file, compression) if compression else Sink(file)


def parse_shard(text: str) -> tuple[int, int]:
    """`3/10` as (3, 10): job 3 of the jobs 0 to 9."""
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and int(number) < int(count)):
        raise DataError(f"A shard is i/n with i from 0 to n-1, for example 0/4. Received: {text!r}.")
    return int(number), int(count)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes a JSON object as a file that appears as a whole, with its checksum inside, and beside it: that of another set would fit."""
    content = {**value, IN_JSON: json_checksum(value)}
    try:
        write_checked(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise unwritable(path, error) from None


def write_records(values: Iterable[Any], schema: Schema, path: Any, *, split: str = "data", shards: int = 1,
                  shard: tuple[int, int] | None = None, compression: str = "", overwrite: bool = False) -> int:  # fmt: skip
    """Writes `values` into the folder `path`; returns how many.

    Args:
        values: what `schema.encode` takes, in order.
        schema: their structure; stored as schema.json.
        path: the folder. Each file is written aside and gets its name when all are complete.
        split: the first part of the names of the files.
        shards: the number of files; value i goes into file i mod n.
        shard: (i, n): these values are those of job i of n, each of which writes one of n files.
        compression: "GZIP" or "ZLIB".
        overwrite: replace files of these names.
    """
    folder = located(path)
    number, count = shard or (0, shards)
    if count < 1:
        raise DataError(f"shards must be at least 1. Received: {count}.")
    if not split or "/" in split:
        raise DataError(f"A split is the first part of the names of files, so it has no slash. Received: {split!r}.")
    numbers = [number] if shard else list(range(count))
    names = [shard_name(split, number, count) for number in numbers]
    _check_free(folder, split, names, overwrite)
    stored = Schema(schema.structure, interleaved=True)
    known = None if overwrite else find_schema([folder / SCHEMA_FILE])
    if known is not None and known != stored:
        path = str(folder / SCHEMA_FILE)
        raise DataError(f"{path!r} describes records of another structure: choose another folder.")
    if is_remote(folder):
        check_writable(folder)
        with tempfile.TemporaryDirectory(prefix="scena-records-") as here:
            written = _write(values, stored, Path(here), names, compression)
            send_folder(Path(here), folder)
        return written
    make_folder(folder)
    return _write(values, stored, folder, names, compression)


def _write(values: Iterable[Any], stored: Schema, folder: Path, names: list[str], compression: str) -> int:
    files = [folder / name for name in names]
    written = 0
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(ShardWriter(file, compression)) for file in files]
        for value in values:
            writers[written % len(writers)].write(stored.encode(value))
            written += 1
        for writer in writers:
            writer.finish()
        # a new file must meet neither a stale index nor an old file of the set: after a crash, files are missing, which is noticed
        for file in files:
            index_path(file).unlink(missing_ok=True)
            file.unlink(missing_ok=True)
        sync(folder)
        write_json(folder / SCHEMA_FILE, stored.to_json())
    return written


def _check_free(folder: Any, split: str, names: list[str], overwrite: bool) -> None:
    there = [file.name for file, inner in entries(folder) if not inner] if is_folder(folder) else []
    of_split = [name for name in there if fnmatch(name, f"{split}-*-of-*.tfrecord")]
    same_set = {name.rpartition("-of-")[2] for name in names}
    strange = [name for name in of_split if name.rpartition("-of-")[2] not in same_set]
    if strange and not overwrite:
        where = f"{str(folder)!r} holds another set of {split!r} ({strange[0]})"
        raise DataError(f"{where}: remove it, or choose a new folder.")
    existing = sorted({*there} & {*names})
    if existing and not overwrite:
        where = f"{str(folder)!r} already holds {existing[0]}"
        raise DataError(f"{where}. Nothing was written; overwrite=True (--force) replaces it.")
    if overwrite:
        for name in strange:
            (folder / name).unlink()
            index_path(folder / name).unlink(missing_ok=True)
