"""Which samples a source with random access delivers next, as chunks of indices; and where each stage starts."""

from collections.abc import Iterator
from typing import Any

from scena.data.batch import Cursor
from scena.data.stages.context import PipelineContext
from scena.data.stages.order import Whole
from scena.data.stages.stages import Chunk, Stage


def index_chunks(context: PipelineContext, epoch: int, cursor: Cursor, start: Any) -> Iterator[Chunk]:
    """The chunks of an epoch for the first stage.

    Args:
        work: the pipeline.
        epoch: which epoch.
        cursor: where to start, if the first stage makes the batches itself.
        start: else the position of the stage after it, None at the start of an epoch.
    """
    order = context.order(epoch)
    stage = context.stages[0]
    size, total = stage.chunk_size, len(order)
    if stage.parallel and stage.batches:
        number = cursor.batch
        for first in range(cursor.samples, total, size):
            ordinals = range(first, min(first + size, total))
            if len(ordinals) < size and context.pipeline.batch_drop_remainder:
                return
            part, whole = ordinals, None
            if context.shard is not None:
                part, whole = context.shard.take(ordinals), Whole(ordinals.start, ordinals.stop)
            yield Chunk(number, part, indices=order[part.start : part.stop], after=whole)
            number += 1
        return
    following = 0
    if start and stage.generating:  # a chunk is replayed as a whole; the reader drops what was consumed
        following = min([start["next"], *start["pending"]])[0]
    elif start:
        yield from _pending(order, size, start)
        chunk, offset = start["next"]
        ordinals = range(chunk * size + offset, min((chunk + 1) * size, total))
        if offset and len(ordinals):
            yield Chunk(chunk, ordinals, indices=order[ordinals.start : ordinals.stop])
        following = chunk + bool(offset)
    for number in range(following, -(-total // size)):
        ordinals = range(number * size, min((number + 1) * size, total))
        yield Chunk(number, ordinals, indices=order[ordinals.start : ordinals.stop])


def _pending(order: Any, size: int, start: Any) -> Iterator[Chunk]:
    """Samples that were read but not handed out: each is read again, alone, whatever lies between them is not."""
    for chunk, offset in start["pending"]:
        ordinal = chunk * size + offset
        yield Chunk(chunk, range(ordinal, ordinal + 1), indices=[order[ordinal]])


def starts(stages: list[Stage], state: Any) -> list[Any]:
    """The position from which each stage starts, given the state of a cursor (that of the last serial stage)."""
    positions: list[Any] = [None] * len(stages)
    position = state
    for stage_index in range(len(stages) - 1, -1, -1):
        if stages[stage_index].parallel:
            continue
        positions[stage_index] = position
        position = position.get("in") if position and stages[stage_index].exact else None
    return positions


def feed_start(stages: list[Stage], positions: list[Any]) -> Any:
    """The position that the feed of indices starts from: that of the first serial stage, if it can be restored."""
    for stage_index in (0, 1):
        if stage_index < len(stages) and not stages[stage_index].parallel:
            return positions[stage_index] if stages[stage_index].exact else None
    return None
