"""What a process writes into a slot for each piece: a batch, or samples for the next segment; and reading it back."""

from collections.abc import Sequence
from typing import Any

from scena.data.batch import Batch
from scena.data.collate import split
from scena.data.cursor import Cursor
from scena.data.engine.codec import SlotWriter, array_at, read_samples
from scena.data.engine.memory import Bytes
from scena.data.errors import DataError
from scena.data.inprocess import meta_and_size
from scena.data.piece import Piece
from scena.data.plain import WHAT_TRAVELS, NotPlainError, pack, unpack
from scena.data.sample import Sample
from scena.data.work import Work


def write_batch(work: Work, writer: SlotWriter, piece: Piece) -> Any:
    """Builds a batch in the slot; None if there is nothing to build."""
    last = work.segments[-1]
    several = len(work.segments) > 1  # in a pipeline of one segment, the feed has dropped it already
    short = several and last.parallel and len(piece.samples) < last.piece and work.pipeline.batch_drop_remainder
    if not piece.samples or short:
        return None
    arrays = work.collator.collate(piece.samples, writer.allocate)
    named = {key: array for (_, key), array in zip(work.collator.keys(), arrays, strict=True)}
    meta, size = meta_and_size(work, piece, named)
    placed = writer.placed
    arrays_of_meta: list[Any] = []
    try:
        packed = _pack_meta(meta, arrays_of_meta)
    except NotPlainError as error:
        sample = piece.samples[0] if len(piece.samples) == 1 else None
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


def write_piece(writer: SlotWriter, piece: Piece) -> Any:
    """Writes the samples of a piece."""
    offsets = None if piece.offsets is None else list(piece.offsets)
    return offsets, writer.samples(piece.samples)


def read_piece(view: Bytes, stored: Any) -> tuple[Sequence[int] | None, list[Sample]]:
    """The offsets and the samples of a piece."""
    offsets, samples = stored
    return offsets, read_samples(view, samples)
