"""Which samples a source with random access delivers next, as pieces of indices; and where each segment starts."""

from collections.abc import Iterator
from typing import Any

from scena.data.batch import Cursor
from scena.data.stages.context import Work
from scena.data.stages.order import Whole
from scena.data.stages.stages import Piece, Segment


def index_pieces(work: Work, epoch: int, cursor: Cursor, start: Any) -> Iterator[Piece]:
    """The pieces of an epoch for the first segment.

    Args:
        work: the pipeline.
        epoch: which epoch.
        cursor: where to start, if the first segment makes the batches itself.
        start: else the position of the segment after it, None at the start of an epoch.
    """
    order = work.order(epoch)
    segment = work.segments[0]
    size, total = segment.piece, len(order)
    if segment.parallel and segment.batches:
        number = cursor.batch
        for first in range(cursor.samples, total, size):
            ordinals = range(first, min(first + size, total))
            if len(ordinals) < size and work.pipeline.batch_drop_remainder:
                return
            part, whole = ordinals, None
            if work.shard is not None:
                part, whole = work.shard.take(ordinals), Whole(ordinals.start, ordinals.stop)
            yield Piece(number, part, indices=order[part.start : part.stop], after=whole)
            number += 1
        return
    following = 0
    if start and segment.generating:  # a chunk is replayed as a whole; the reader drops what was consumed
        following = min([start["next"], *start["pending"]])[0]
    elif start:
        yield from _pending(order, size, start)
        piece, offset = start["next"]
        ordinals = range(piece * size + offset, min((piece + 1) * size, total))
        if offset and len(ordinals):
            yield Piece(piece, ordinals, indices=order[ordinals.start : ordinals.stop])
        following = piece + bool(offset)
    for number in range(following, -(-total // size)):
        ordinals = range(number * size, min((number + 1) * size, total))
        yield Piece(number, ordinals, indices=order[ordinals.start : ordinals.stop])


def _pending(order: Any, size: int, start: Any) -> Iterator[Piece]:
    """Samples that were read but not handed out: each is read again, alone, whatever lies between them is not."""
    for piece, offset in start["pending"]:
        ordinal = piece * size + offset
        yield Piece(piece, range(ordinal, ordinal + 1), indices=[order[ordinal]])


def starts(segments: list[Segment], state: Any) -> list[Any]:
    """The position from which each segment starts, given the state of a cursor (that of the last serial segment)."""
    positions: list[Any] = [None] * len(segments)
    position = state
    for place in range(len(segments) - 1, -1, -1):
        if segments[place].parallel:
            continue
        positions[place] = position
        position = position.get("in") if position and segments[place].exact else None
    return positions


def feed_start(segments: list[Segment], positions: list[Any]) -> Any:
    """The position that the feed of indices starts from: that of the first serial segment, if it can be restored."""
    for place in (0, 1):
        if place < len(segments) and not segments[place].parallel:
            return positions[place] if segments[place].exact else None
    return None
