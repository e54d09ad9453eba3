"""How pieces and batches lie in a slot: arrays as raw bytes, and a header that says where they are.

Nothing is pickled: headers are plain values (scena/data/plain.py). Arrays are written once and read where they lie.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from scena.data.collate import Layout
from scena.data.engine.memory import Bytes, SharedMemory, aligned
from scena.data.plain import decode, encode, pack_samples, unpack_samples
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
            self.size = start + math.prod(shape) * dtype.itemsize
        view = self._memory.view(self.slot, self.size)
        self.placed: list[Placed] = [
            (shape, dtype_name(dtype), start) for (shape, dtype), start in zip(layout, starts, strict=True)
        ]
        return [array_at(view, placed) for placed in self.placed]

    def samples(self, samples: Sequence[Sample]) -> Any:
        """Writes samples; returns what `read_samples` needs."""
        arrays: list[Array] = []
        packed = pack_samples(list(samples), arrays, records=True)
        layout = [(array.shape, array.dtype) for array in arrays]
        for target, array in zip(self.allocate(layout), arrays, strict=True):
            target[...] = array
        return packed, self.placed

    def header(self, value: Any) -> tuple[int, int]:
        """Writes the header, plain values; returns its offset and length."""
        head = np.frombuffer(encode(value), np.uint8)
        start = aligned(self.size)
        self.size = start + len(head)
        self._memory.view(self.slot, self.size)[start : self.size] = head
        return start, len(head)


def read_header(view: Bytes, start: int, length: int) -> Any:
    """The header of a slot."""
    return decode(view[start : start + length].data)


def read_samples(view: Bytes, stored: Any) -> list[Sample]:
    """Samples of a slot. Small arrays are copied, so that one of them does not keep a slot; large ones look into it."""
    packed, placed = stored
    arrays = [array_at(view, one) for one in placed]
    return unpack_samples(packed, [array if array.nbytes >= LARGE else array.copy() for array in arrays], records=True)


def pack_indices(indices: Sequence[int]) -> bytes:
    """Where to read samples, for a message: a task that waits in a worker is then one object, not one for each sample."""
    return np.asarray(indices, np.int64).tobytes()


def unpack_indices(packed: bytes | None) -> Sequence[int] | None:
    """What `pack_indices` was given."""
    return None if packed is None else memoryview(packed).cast("q")


def array_at(view: Bytes, placed: Placed) -> Array:
    """An array of a slot, not copied."""
    shape, name, start = placed
    return np.ndarray(shape, dtype_of(name), view.data, start)


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
