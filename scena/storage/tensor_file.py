"""Named arrays as one safetensors file, laid out in memory that is allocated once.

The safetensors package reads the files. Writing is ours: the package copies every array into fresh memory first, and page faults make
that several times slower than a copy into memory that exists already (docs/decisions/0030).
"""

import json
import os
import struct
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize

from scena.storage.checksums import checksum, verify

Array = np.ndarray[Any, Any]

_CHUNK = 4 << 20
_SECOND_THREAD_FROM = 8 << 20
"""Below this size starting a second thread takes longer than it saves."""
_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8",
    "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


class TensorBuffer:
    """Memory that holds the content of a tensor file. Fill it again and again: it is allocated again only if the layout changes."""

    def __init__(self) -> None:
        self._memory: Array = np.empty(0, np.uint8)
        self._layout: list[tuple[str, str, tuple[int, ...]]] = []
        self._targets: list[Array] = []
        self._second = ThreadPoolExecutor(1, thread_name_prefix="scena-copy")

    def reserve(self, arrays: Mapping[str, Array]) -> None:
        """Allocates the memory for arrays like these, and touches it so that the first copy is as fast as later ones."""
        layout = [(name, _type_name(name, array), array.shape) for name, array in arrays.items()]
        if layout == self._layout:
            return
        header: dict[str, Any] = {}
        offset = 0
        for (name, dtype, shape), array in zip(layout, arrays.values(), strict=True):
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + array.nbytes]}
            offset += array.nbytes
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-(8 + len(text)) % 8)
        start = 8 + len(text)
        if self._memory.nbytes != start + offset:
            self._memory = np.empty(start + offset, np.uint8)
            self._memory.fill(0)
        self._memory[:start] = np.frombuffer(struct.pack("<Q", len(text)) + text, np.uint8)
        bounds = (item["data_offsets"] for item in header.values())
        self._targets = [self._memory[start + first : start + last] for first, last in bounds]
        self._layout = layout

    def fill(self, arrays: Mapping[str, Array]) -> None:
        """Copies the arrays in; large ones with two threads."""
        self.reserve(arrays)
        chunks: list[tuple[Array, Array]] = []
        for target, array in zip(self._targets, arrays.values(), strict=True):
            flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            for start in range(0, flat.nbytes, _CHUNK):
                chunks.append((target[start : start + _CHUNK], flat[start : start + _CHUNK]))
        if self._memory.nbytes < _SECOND_THREAD_FROM:
            _copy(chunks)
            return
        other = self._second.submit(_copy, chunks[1::2])
        _copy(chunks[::2])
        other.result()

    @property
    def nbytes(self) -> int:
        return self._memory.nbytes

    def checksum(self) -> str:
        return checksum(self._memory)

    def write(self, path: Path) -> None:
        """Writes the file and waits until it is on the disk."""
        with path.open("wb", buffering=0) as file:
            rest = memoryview(self._memory)  # type: ignore[arg-type]  # numpy's types do not say that it is a buffer
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())


def read_tensors(path: Path) -> dict[str, Array]:
    """Reads a tensor file; raises ValueError if it is damaged, OSError if it cannot be read."""
    import ml_dtypes  # noqa: F401  (makes numpy know bfloat16)

    data = path.read_bytes()
    verify(path, data)
    try:
        entries = deserialize(data)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise ValueError(f"{path.name} is not a safetensors file or is damaged ({error})") from error
    arrays: dict[str, Array] = {}
    for name, entry in entries:
        if entry["dtype"] not in _DTYPES:
            raise ValueError(f"{path.name} holds {name} of the unknown type {entry['dtype']}")
        arrays[name] = np.frombuffer(entry["data"], np.dtype(_DTYPES[entry["dtype"]])).reshape(entry["shape"])
    return arrays


def _type_name(name: str, array: Array) -> str:
    try:
        return _NAMES[array.dtype.name]
    except KeyError:
        raise ValueError(f"{name} has the type {array.dtype.name}, which a checkpoint cannot store") from None


def _copy(chunks: list[tuple[Array, Array]]) -> None:
    for target, source in chunks:
        np.copyto(target, source)
