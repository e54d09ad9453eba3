"""How chunks and batches lie in a slot: arrays as raw bytes, and a header that says where they are.

Nothing is pickled: headers are plain values (scena/data/stages/sample_codec.py). Arrays are written once and read where they lie.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from scena.data.batch import Batch, Cursor
from scena.data.engines.in_process import meta_and_size
from scena.data.engines.workers.memory import Bytes, SharedMemory
from scena.data.sample import Sample
from scena.data.stages.collate import Layout, split
from scena.data.stages.context import PipelineContext
from scena.data.stages.sample_codec import (
    WHAT_TRAVELS,
    NotPlainError,
    aligned,
    decode,
    dtype_name,
    dtype_of,
    encode,
    pack,
    pack_samples,
    unpack,
    unpack_samples,
)
from scena.data.stages.stages import Chunk
from scena.errors import DataError

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


def write_batch(context: PipelineContext, writer: SlotWriter, chunk: Chunk) -> Any:
    """Builds a batch in the slot; None if there is nothing to build."""
    last = context.stages[-1]
    several = len(context.stages) > 1  # in a pipeline of one stage, the feed has dropped it already
    short = several and last.parallel and len(chunk.samples) < last.chunk_size and context.pipeline.batch_drop_remainder
    if not chunk.samples or short:
        return None
    arrays = context.collator.collate(chunk.samples, writer.allocate)
    named = {key: array for (_, key), array in zip(context.collator.keys(), arrays, strict=True)}
    meta, size = meta_and_size(context, chunk, named)
    placed = writer.placed
    arrays_of_meta: list[Any] = []
    try:
        packed = _pack_meta(meta, arrays_of_meta)
    except NotPlainError as error:
        sample = chunk.samples[0] if len(chunk.samples) == 1 else None
        raise DataError(
            f"The meta of {sample.identity() if sample else 'a sample'} cannot travel between processes: it holds a {error}. "
            f"It may hold {WHAT_TRAVELS}. Use num_processes=0, or let a processor replace it."
        ) from None
    if arrays_of_meta:
        copies = writer.allocate([(array.shape, array.dtype) for array in arrays_of_meta])
        for copy, array in zip(copies, arrays_of_meta, strict=True):
            copy[...] = array
        return size, packed, placed, writer.placed
    return size, packed, placed, None


def _pack_meta(meta: list[Any], arrays: list[Any]) -> list[Any] | int:
    """The meta of each sample, plain; how many there are if none of them has any."""
    if any(one is not None for one in meta):
        return [pack(one, arrays, records=True) for one in meta]
    return len(meta)


def read_batch(keys: list[tuple[str, str]], view: Bytes, stored: Any, cursor: Cursor) -> Batch:
    """The batch that `write_batch` wrote; its arrays look into the slot."""
    size, packed, placed, of_meta = stored
    inputs, targets = split(keys, [array_at(view, one) for one in placed])
    arrays_of_meta = [array_at(view, one).copy() for one in of_meta or ()]
    meta = [None] * packed if isinstance(packed, int) else [unpack(one, arrays_of_meta, records=True) for one in packed]
    return Batch(inputs, targets, meta, size, cursor)


def write_chunk(writer: SlotWriter, chunk: Chunk) -> Any:
    """Writes the samples of a chunk."""
    offsets = None if chunk.offsets is None else list(chunk.offsets)
    return offsets, writer.samples(chunk.samples)


def read_chunk(view: Bytes, stored: Any) -> tuple[Sequence[int] | None, list[Sample]]:
    """The offsets and the samples of a chunk."""
    offsets, samples = stored
    return offsets, read_samples(view, samples)
