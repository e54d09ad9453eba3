"""Samples in one file, readable by index: on disk (the cache) or in memory (preloaded data), in the same format.

Reading it never runs code: values are plain, arrays are raw bytes (sample_codec.py). Only a cache in memory, which this program wrote
itself, may hold records of known classes. Each sample in a file has a checksum, and the table of offsets and checksums has one that
depends on the file's name.
"""

import contextlib
import logging
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from google_crc32c import extend, value

from scena.data.generator import RandomAccessGenerator
from scena.data.params import PipelineMode
from scena.data.sample import Sample
from scena.data.stages.sample_codec import aligned, decode, dtype_name, dtype_of, encode, pack_samples, unpack_samples
from scena.errors import DataError

logger = logging.getLogger("scena.data")

_MAGIC = b"scena-samples-2\0"
_FOOTER = struct.Struct("<QQQ16s")


class SampleWriter:
    """Appends samples to the file of a cache, or to one in memory (`name` is None)."""

    def __init__(self, descriptor: int, name: str | None) -> None:
        self._file = os.fdopen(os.dup(descriptor), "wb")
        self._in_memory = name is None
        self._name = name or ""
        self._rows: list[tuple[int, int]] = []
        self._size = self._crc = 0

    def add(self, sample: Sample) -> None:
        """Writes one sample."""
        arrays: list[np.ndarray[Any, Any]] = []
        tree = pack_samples([sample], arrays, records=self._in_memory)
        layout, offset = [], 0
        for array in arrays:
            layout.append([dtype_name(array.dtype), list(array.shape), offset])
            offset = aligned(offset + array.nbytes)
        head = encode([tree, layout])
        start, self._crc = self._size, 0
        self._write(struct.pack("<Q", len(head)) + head)
        for array in arrays:
            self._write(np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.nbytes else b"")
        self._rows.append((start, self._crc))

    def _write(self, data: Any) -> None:
        size = len(data)
        padding = b"\0" * (aligned(size) - size)
        try:
            self._file.write(data)
            self._file.write(padding)
        except OSError as error:
            raise _not_stored(error) from error
        if not self._in_memory:
            self._crc = extend(extend(self._crc, data), padding)
        self._size += aligned(size)

    def finish(self) -> None:
        """Writes the index; only now the file is complete."""
        try:
            table = np.asarray([*self._rows, (self._size, 0)], np.int64).tobytes()
            self._file.write(table)
            self._file.write(_FOOTER.pack(len(self._rows), self._size, _table_checksum(table, self._name), _MAGIC))
            self._file.flush()
            if not self._in_memory:
                os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise _not_stored(error) from error

    def abandon(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()


def _not_stored(error: OSError) -> DataError:
    reason = f"The processed samples cannot be stored: {error.strerror}"
    return DataError(f"{reason}. Free some space, or do without preload and cache_dir.")


class StoredSamples(RandomAccessGenerator[Any]):
    """The cached samples, by index. `descriptor` is an open file that worker processes share."""

    def __init__(self, descriptor: int, mode: PipelineMode, path: Path | None) -> None:
        super().__init__(None, mode)
        self.descriptor = descriptor
        self.path = path
        self.in_memory = path is None
        self._data = np.frombuffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ), np.uint8)
        count, size, *_ = _FOOTER.unpack(self._data[-_FOOTER.size :].tobytes())
        self._rows = self._data[size : size + 16 * (count + 1)].view(np.int64).reshape(-1, 2)
        self.original: Any = None
        """The original source if indices are unchanged, else None."""

    @property
    def nbytes(self) -> int:
        return len(self._data)

    def __len__(self) -> int:
        return len(self._rows) - 1

    def is_sound(self, index: int) -> bool:
        """Whether a sample of a file is what was written."""
        start, end = int(self._rows[index, 0]), int(self._rows[index + 1, 0])
        return bool(value(self._data[start:end]) == self._rows[index, 1])

    def __getitem__(self, index: int) -> Sample:
        if index < 0:
            index += len(self)
        start = int(self._rows[index, 0])
        if not self.in_memory and not self.is_sound(index):
            raise DataError(f"The cache {self.path} is damaged (sample {index}). Delete it: it is then made again.")
        length = int(self._data[start : start + 8].view(np.uint64)[0])
        tree, layout = decode(self._data[start + 8 : start + 8 + length].data)
        base = start + aligned(8 + length)
        arrays = []
        for name, shape, offset in layout:
            dtype = dtype_of(name)
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            raw = self._data[base + offset : base + offset + size].copy()  # a processor may change it in place
            arrays.append(raw.view(dtype).reshape(shape))
        return unpack_samples(tree, arrays, records=self.in_memory)[0]

    def epoch_order(self, rng: np.random.Generator, chosen: Any) -> Any:
        return None if self.original is None else self.original.epoch_order(rng, chosen)

    def strata(self) -> Any:
        return None if self.original is None else self.original.strata()

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def _table_checksum(table: bytes, name: str) -> int:
    return int(extend(value(name.encode()), table))


def is_complete(path: Path) -> bool:
    """Whether a file is a cache that was finished under this name. Logs a warning if it is damaged."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size < _FOOTER.size:
                return False
            file.seek(size - _FOOTER.size)
            count, data, crc, magic = _FOOTER.unpack(file.read(_FOOTER.size))
            table = 16 * (count + 1)
            whole = magic == _MAGIC and data + table + _FOOTER.size == size
            whole = whole and file.seek(data) == data and _table_checksum(file.read(table), path.name) == crc
    except OSError:
        return False
    if not whole:
        logger.warning("The cache %s is damaged, or that of something else: it is made again.", path)
    return bool(whole)
