"""Shared memory of a pool of processes: one sparse memfd, cut into slots that grow as needed; and what lies in a slot.

Each slot has its own stretch of the file; pages exist only where something was written. The kernel frees all of it with
the last process that holds it, however that process ended: nothing has a name, nothing can be left behind.

A slot holds the arrays of some chunks or batches as raw bytes, and a header of plain values that says where they are. Arrays are
written once and read where they lie; nothing is pickled (stages/sample_codec.py).
"""

import math
import mmap
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from scena.data.engines.workers.messages import Stored
from scena.data.sample import Batch, Cursor, Sample
from scena.data.stages import sample_codec
from scena.data.stages.collate import Layout, copied, split
from scena.data.stages.context import PipelineContext
from scena.data.stages.sample_codec import NotPlainError, aligned, dtype_name, dtype_of, pack, unpack
from scena.data.stages.stages import Chunk, Stage
from scena.errors import DataError

STRIDE = 1 << 36
"""Address space of a slot in the file (64 GiB); it costs nothing until it is used."""
SLOTS = 4096
LARGE = 1 << 16
_PAGE = 1 << 16

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Placed = tuple[tuple[int, ...], str, int]
"""Shape, dtype and offset of an array in a slot."""


class SharedMemory:
    """The slots, as one process sees them."""

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            if not hasattr(os, "memfd_create"):
                raise DataError("Worker processes need Linux (memfd). Set num_processes=0 on this system.")
            descriptor = os.memfd_create("scena", os.MFD_CLOEXEC)
            os.ftruncate(descriptor, STRIDE * SLOTS)
        self.descriptor = descriptor
        self._mapped: dict[int, Bytes] = {}

    def view(self, slot: int, size: int) -> Bytes:
        """At least `size` bytes of a slot, writable."""
        mapped = self._mapped.get(slot)
        if mapped is None or len(mapped) < size:
            if size > STRIDE:
                raise DataError(f"A batch of {size} bytes is larger than any slot ({STRIDE} bytes).")
            length = -(-max(size + size // 8, _PAGE) // _PAGE) * _PAGE
            mapped = np.frombuffer(mmap.mmap(self.descriptor, length, offset=slot * STRIDE), np.uint8)
            self._mapped[slot] = mapped
        return mapped

    def close(self) -> None:
        """Lets go of the file; views that are still in use stay valid."""
        self._mapped.clear()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class SlotPool:
    """Which slots are free. Thread-safe, because the garbage collector may give a slot back in any thread."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self.count = 0
        self._lock = threading.Lock()

    def take(self) -> int:
        """A free slot; the one that was used last comes first, its pages are warm."""
        try:
            return self._free.pop()
        except IndexError:
            pass
        with self._lock:
            if self.count >= SLOTS:
                raise DataError(f"More than {SLOTS} batches are in use at once: do not keep batches, or copy them.")
            self.count += 1
            return self.count - 1

    def give(self, *slots: int) -> None:
        self._free.extend(slots)


class Returns:
    """Slots that a worker has read and the parent may use again."""

    def __init__(self) -> None:
        self._slots: list[int] = []

    def give(self, slot: int) -> None:
        self._slots.append(slot)

    def take(self) -> list[int]:
        """The slots given since the last call."""
        taken, self._slots = self._slots, []
        return taken


class Lease:
    """Keeps a slot until the last array that looks into it is gone."""

    def __init__(self, pool: SlotPool | Returns, slot: int, view: Bytes) -> None:
        self._pool = pool
        self._slot = slot
        self._view = view
        self.__array_interface__ = view.__array_interface__

    def __del__(self) -> None:
        self._pool.give(self._slot)


def open_slot(pool: SlotPool | Returns, memory: SharedMemory, stored: Stored) -> tuple[Bytes, Any]:
    """The bytes of a slot and its header; the slot is given back with the last array that looks into it."""
    view = np.asarray(Lease(pool, stored.slot, memory.view(stored.slot, stored.start + stored.length)))
    return view, sample_codec.decode(view[stored.start : stored.start + stored.length].data)


class SlotWriter:
    """Fills one slot with arrays, one after the other, and closes it with a header."""

    def __init__(self, memory: SharedMemory, slot: int) -> None:
        self._memory = memory
        self.slot = slot
        self.size = 0
        self._placed: list[Placed] = []

    def allocate(self, layout: Layout) -> list[Array]:
        """Space for arrays; they are views into the slot."""
        self._placed = []
        for shape, dtype in layout:
            start = aligned(self.size)
            self._placed.append((shape, dtype_name(dtype), start))
            self.size = start + math.prod(shape) * dtype.itemsize
        view = self._memory.view(self.slot, self.size)
        return [_array_at(view, placed) for placed in self._placed]

    def write(self, context: PipelineContext, stage: Stage, chunk: Chunk) -> Any:
        """Writes what a stage made of a chunk, a batch or samples; returns what the header says about it."""
        if stage.batches and context.batching:
            return self._batch(context, chunk) if context.is_batch(chunk) else None
        arrays: list[Array] = []
        packed = sample_codec.pack_samples(chunk.samples, arrays, records=True)
        copied(arrays, self.allocate)
        return None if chunk.offsets is None else list(chunk.offsets), packed, self._placed

    def _batch(self, context: PipelineContext, chunk: Chunk) -> Any:
        arrays = context.collator.collate(chunk.samples, self.allocate)
        placed = self._placed
        meta, size = context.meta_and_size(chunk, arrays)
        if all(one is None for one in meta):
            return size, len(meta), placed, None
        of_meta: list[Array] = []
        try:
            packed = [pack(one, of_meta, records=True) for one in meta]
        except NotPlainError as error:
            sample = chunk.samples[0].identity() if len(chunk.samples) == 1 else "a sample"
            problem = f"The meta of {sample} cannot travel between processes: it holds a {error}"
            allowed = f"It may hold {sample_codec.WHAT_TRAVELS}"
            raise DataError(f"{problem}. {allowed}. Use num_processes=0, or let a processor replace it.") from None
        copied(of_meta, self.allocate)
        return size, packed, placed, self._placed

    def close(self, results: list[Any]) -> Stored:
        """Writes the header; returns where it is."""
        head = np.frombuffer(sample_codec.encode(results), np.uint8)
        start = aligned(self.size)
        self.size = start + len(head)
        self._memory.view(self.slot, self.size)[start : self.size] = head
        return Stored(self.slot, start, len(head))


def read_batch(keys: list[tuple[str, str]], view: Bytes, stored: Any, cursor: Cursor) -> Batch:
    """A batch of a slot; its arrays look into the slot."""
    size, packed, placed, of_meta = stored
    inputs, targets = split(keys, [_array_at(view, one) for one in placed])
    meta_arrays = [_array_at(view, one).copy() for one in of_meta or ()]
    meta = [None] * packed if isinstance(packed, int) else [unpack(one, meta_arrays, records=True) for one in packed]
    return Batch(inputs, targets, meta, size, cursor)


def read_chunk(view: Bytes, stored: Any) -> tuple[Sequence[int] | None, list[Sample]]:
    """The offsets and the samples of a chunk. Small arrays are copied, so that they do not keep the slot; large ones look into it."""
    offsets, packed, placed = stored
    arrays = [_array_at(view, one) for one in placed]
    arrays = [array if array.nbytes >= LARGE else array.copy() for array in arrays]
    return offsets, sample_codec.unpack_samples(packed, arrays, records=True)


def _array_at(view: Bytes, placed: Placed) -> Array:
    shape, name, start = placed
    return np.ndarray(shape, dtype_of(name), view.data, start)


def pack_indices(indices: Sequence[int]) -> bytes:
    """Where to read samples, for a message: a task that waits in a worker is then one object, not one for each sample."""
    return np.asarray(indices, np.int64).tobytes()


def unpack_indices(packed: bytes | None) -> Sequence[int] | None:
    """What `pack_indices` was given."""
    return None if packed is None else memoryview(packed).cast("q")
