"""How pieces and batches lie in a slot: arrays as raw bytes, and a header that says where they are.

Headers are pickled: they travel through memory that only this process and its own workers hold, and may carry any object
that a sample's meta is. Arrays are never pickled. Nothing of this is ever read from a file.
"""

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from scena.data.collate import Layout
from scena.data.engine.memory import Bytes, SharedMemory, aligned
from scena.data.sample import Sample

LARGE = 1 << 16
Array = np.ndarray[Any, Any]
Placed = tuple[tuple[int, ...], str, int]
"""Shape, dtype and offset of an array in a slot."""


class SlotWriter:
    """Fills one slot with arrays, one after the other, and closes it with a header."""

    def __init__(self, memory: SharedMemory, slot: int) -> None:
        self._memory = memory
        self.slot = slot
        self.size = 0

    def allocate(self, layout: Layout) -> list[Array]:
        """Space for arrays; they are views into the slot."""
        starts = []
        for shape, dtype in layout:
            start = aligned(self.size)
            starts.append(start)
            self.size = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        view = self._memory.view(self.slot, self.size)
        self.placed: list[Placed] = [
            (shape, dtype_name(dtype), start) for (shape, dtype), start in zip(layout, starts, strict=True)
        ]
        return [array_at(view, placed) for placed in self.placed]

    def samples(self, samples: Sequence[Sample]) -> Any:
        """Writes samples; returns what `read_samples` needs."""
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(list(samples), protocol=5, buffer_callback=buffers.append)
        places: list[tuple[int, int]] = []
        for buffer in buffers:
            raw = np.frombuffer(buffer.raw(), np.uint8)
            start = aligned(self.size)
            self.size = start + len(raw)
            self._memory.view(self.slot, self.size)[start : self.size] = raw
            places.append((start, len(raw)))
        return head, places

    def header(self, value: Any) -> tuple[int, int]:
        """Writes the header; returns its offset and length."""
        head = np.frombuffer(pickle.dumps(value, protocol=5), np.uint8)
        start = aligned(self.size)
        self.size = start + len(head)
        self._memory.view(self.slot, self.size)[start : self.size] = head
        return start, len(head)


def read_header(view: Bytes, start: int, length: int) -> Any:
    """The header of a slot."""
    return pickle.loads(view[start : start + length].data)


def read_samples(view: Bytes, stored: Any) -> list[Sample]:
    """Samples of a slot. Small arrays are copied, so that one of them does not keep a slot; large ones look into it."""
    head, places = stored
    buffers = [_buffer(view[start : start + size]) for start, size in places]
    samples: list[Sample] = pickle.loads(head, buffers=buffers)
    return samples


def _buffer(part: Bytes) -> Bytes:
    return part if len(part) >= LARGE else part.copy()


def array_at(view: Bytes, placed: Placed) -> Array:
    """An array of a slot, not copied."""
    shape, name, start = placed
    dtype = dtype_of(name)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    array: Array = view[start : start + size].view(dtype).reshape(shape)
    return array


def dtype_name(dtype: np.dtype[Any]) -> str:
    """A dtype as text."""
    return dtype.str if dtype.kind != "V" else dtype.name


_DTYPES: dict[str, np.dtype[Any]] = {}


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype that `dtype_name` wrote."""
    found = _DTYPES.get(name)
    if found is None:
        from scena.data.spec import ArraySpec

        found = _DTYPES[name] = np.dtype(name) if name[0] in "<>|=" else ArraySpec((), name).dtype
    return found
