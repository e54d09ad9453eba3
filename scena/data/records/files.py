"""Reading one TFRecord file, in order or by index.

A compressed file is one ordinary gzip or zlib stream that any reader takes; ours starts afresh every few records, so that a record
is reached without decompressing all before it. The index beside a file (`FILE.index`) is an array of numpy's own format, whose last
row holds the file's size, the index's checksum and a mark of the file's end; without one, the file is scanned.
"""

import io
import logging
import mmap
import os
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scena.data.records.framing import OVERHEAD, RecordError, record_at, record_between, scan
from scena.errors import DataError
from scena.storage.checksums import checksum
from scena.storage.location import RemoteBytes, beside, is_remote, located, read_bytes, reason_of

logger = logging.getLogger("scena.data")

_KEPT_BLOCKS = 4
_DENSEST, _ALWAYS = 200, 256 << 20
"""Compressed data is refused if it unpacks to more than this many times its size and to more than this many bytes: it would fill the
memory. Images and arrays of numbers are far from it."""
_ANY_HEADER = 32 + zlib.MAX_WBITS
_END_BYTES = 16
"""How many of a file's last bytes its index knows."""
_MARK_SHIFT = 33
_OTHER_FILE = "is that of another file, although the sizes are equal"


def index_path(path: Any) -> Any:
    return beside(located(path), ".index")


def index_checksum(rows: np.ndarray[Any, Any], end: bytes = b"") -> int:
    """What the last number of an index has to be; never 0, which an index without a checksum has there.

    Its low bits are the checksum of the index. Those above are a mark of the last bytes of the file, which hold a checksum of its last
    record, so that the index of another file of the same size is noticed; 0 without it.
    """
    own = int(checksum(np.ascontiguousarray(rows, np.int64).tobytes()[:-8]), 16) | 1 << 32
    return own | (_mark(end) << _MARK_SHIFT if end else 0)


def last_bytes(path: Path) -> bytes:
    """Those that an index knows."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
        return file.read()


def _mark(end: bytes) -> int:
    return int(checksum(end), 16) % ((1 << 29) - 1) + 1


def compression_of(path: Any) -> str:
    """The compression of a record file, detected by its first bytes."""
    if is_remote(path):
        start = RemoteBytes(path)[0:12]
    else:
        with path.open("rb") as file:
            start = file.read(12)
    if start[:2] == b"\x1f\x8b":
        return "GZIP"
    # a plain file starts with a length of 8 bytes; 0x78 there would be a record of a huge size, or of 120 bytes
    if len(start) >= 2 and start[0] == 0x78 and (start[0] * 256 + start[1]) % 31 == 0 and start[2:8] != bytes(6):
        return "ZLIB"
    return ""


class RecordFile:
    """The records of one file, by index; each is checked when it is read."""

    def __init__(self, path: Any, compression: str | None = None) -> None:
        self.path = located(path)
        self._map: Any = None
        try:
            if is_remote(self.path):
                self._map = RemoteBytes(self.path)
                self.size = len(self._map)
            else:
                self.size = self.path.stat().st_size
            self.compression = compression_of(self.path) if compression is None else compression
        except OSError as error:
            raise DataError(f"The record file {str(self.path)!r} cannot be read: {reason_of(error)}.") from None
        self._name = str(self.path)
        self._offsets: Any = None
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._index: np.ndarray[Any, Any] | None = None
        self._whole: bytes | None = None
        self._index_problem: str | None = None
        self.damage: str | None = None
        """What is wrong with the compressed stream, known once it was read."""

    @property
    def index(self) -> np.ndarray[Any, Any]:
        """The rows of the index, without the last one."""
        if self._index is None:
            self._index = self._stored_index()
            if self._index is None:
                self._index = self._scanned_index()
        return self._index

    @property
    def has_index(self) -> bool:
        """Whether a fitting index lies beside the file."""
        return self._stored_index() is not None

    def _stored_index(self) -> np.ndarray[Any, Any] | None:
        rows = self._rows_beside()
        if rows is None:
            return None
        if int(rows[-1, 0]) != self.size:
            self._report_index(f"{self._mismatch(rows)}, and this one has {self.size} bytes")
            return None
        if self._foreign(rows):
            self._report_index(_OTHER_FILE)
            return None
        return np.asarray(rows[:-1])

    def _report_index(self, problem: str) -> None:
        if self._index_problem is None:
            self._index_problem = problem
            logger.warning("The index %s %s. It is not used: the file is scanned.", index_path(self.path), problem)

    def _rows_beside(self) -> np.ndarray[Any, Any] | None:
        try:
            path = index_path(self.path)
            data = read_bytes(path)
        except OSError:
            return None
        try:
            rows = np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
        except Exception:  # a header that is none makes numpy raise whatever its parser does
            rows = np.empty(0)
        if rows.ndim != 2 or rows.shape[1] != 2 or not len(rows) or rows.dtype != np.int64:
            self._report_index("is damaged, or is none")
        elif rows[-1, 1] and (int(rows[-1, 1]) ^ index_checksum(rows)) % (1 << _MARK_SHIFT):
            self._report_index("is damaged (its checksum is wrong)")
        else:
            return rows
        return None

    def index_mismatch(self) -> str | None:
        """How the index beside the file contradicts it, None if it does not. Detects a file cut off between two records."""
        rows = self._rows_beside()
        if rows is None:
            return self._index_problem and f"its index {self._index_problem}"
        if int(rows[-1, 0]) != self.size:
            return f"its index {self._mismatch(rows)}"
        return f"its index {_OTHER_FILE}" if self._foreign(rows) else None

    def _foreign(self, rows: np.ndarray[Any, Any]) -> bool:
        """Whether the mark in an index is that of another file. That of a remote one is not read: it would take another request."""
        mark = int(rows[-1, 1]) >> _MARK_SHIFT
        return bool(mark and not is_remote(self.path)) and mark != _mark(last_bytes(self.path))

    def _mismatch(self, rows: np.ndarray[Any, Any]) -> str:
        return f"was made for a file of {int(rows[-1, 0])} bytes with {len(rows) - 1} records"

    def _scanned_index(self) -> np.ndarray[Any, Any]:
        if self.compression:
            self._whole = self._decompressed()
            offsets = [(-1, offset) for offset, _ in scan(self._whole, self._name)]
            self._raise_damage(len(self._whole))
        else:
            offsets = [(offset, 0) for offset, _ in scan(self._buffer(), self._name)]
        return np.array(offsets, np.int64).reshape(-1, 2)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, index: int) -> bytes:
        if self._offsets is None:
            # an item of a memoryview is a Python number at once
            rows = self.index
            second = rows[:, 1] if self.compression else np.append(rows[1:, 0], self.size)
            self._offsets = [np.ascontiguousarray(column).data for column in (rows[:, 0], second)]
        starts, second = self._offsets
        if self.compression:
            return record_at(self._block(starts[index]), second[index], self._name)
        buffer = self._map if self._map is not None else self._buffer()
        return record_between(buffer, starts[index], second[index], self._name)

    def __iter__(self) -> Iterator[bytes]:
        """All records in order; needs no index."""
        buffer = self.contents()
        offset = 0
        while offset < len(buffer):
            data = record_at(buffer, offset, self._name)
            yield data
            offset += OVERHEAD + len(data)
        self._raise_damage(offset)

    def contents(self) -> Any:
        """All frames as one buffer; a damaged compressed file gives what comes before the damage."""
        return self._decompressed() if self.compression else self._buffer()

    def close(self) -> None:
        """Frees the file; it is opened again when it is needed."""
        if isinstance(self._map, mmap.mmap):
            self._map.close()
        self._map = self._whole = None
        self._blocks.clear()

    def _buffer(self) -> Any:
        if self._map is None and is_remote(self.path):
            self._map = RemoteBytes(self.path)
        elif self._map is None:
            with self.path.open("rb") as file:
                empty = not os.fstat(file.fileno()).st_size
                self._map = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._map

    def _block(self, start: int) -> bytes:
        if start < 0:
            if self._whole is None:
                self._whole = self._decompressed()
            return self._whole
        if start in self._blocks:
            self._blocks.move_to_end(start)
            return self._blocks[start]
        starts = self.index[:, 0]
        following = int(np.searchsorted(starts, start, side="right"))
        end = int(starts[following]) if following < len(starts) else self.size
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            block = inflate.decompress(self._buffer()[start:end], max(_ALWAYS, _DENSEST * (end - start)))
            self._refuse_dense(start, bool(inflate.unconsumed_tail))
        except zlib.error as error:
            raise RecordError(self._name, start, f"the compressed data is damaged ({error}), in the block") from None
        self._blocks[start] = block
        if len(self._blocks) > _KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        return block

    def _decompressed(self) -> bytes:
        inflate = zlib.decompressobj(_ANY_HEADER)
        parts: list[bytes] = []
        self.damage = None
        buffer = self._buffer()
        capacity = max(_ALWAYS, _DENSEST * len(buffer))
        try:
            for start in range(0, len(buffer), 1 << 16):
                parts.append(inflate.decompress(buffer[start : start + (1 << 16)]))
                capacity -= len(parts[-1])
                while inflate.eof and inflate.unused_data:  # files written in several sessions
                    rest, inflate = inflate.unused_data, zlib.decompressobj(_ANY_HEADER)
                    parts.append(inflate.decompress(rest))
                    capacity -= len(parts[-1])
                self._refuse_dense(start, capacity < 0)
            if not inflate.eof:
                self.damage = "the compressed data is cut off"
        except zlib.error as error:
            self.damage = f"the compressed data is damaged ({error})"
        return b"".join(parts)

    def _refuse_dense(self, offset: int, dense: bool) -> None:
        if dense:
            problem = f"it unpacks to more than {_DENSEST} times its size, which would fill the memory,"
            raise RecordError(self._name, offset, problem)

    def _raise_damage(self, offset: int) -> None:
        if self.damage is not None:
            raise RecordError(self._name, offset, f"{self.damage}, uncompressed,")
