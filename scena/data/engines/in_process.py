"""The engine that runs a plan in this process, step by step, so that a debugger stops inside a processor."""

from collections.abc import Iterator
from typing import Any

from scena.data.batch import Batch, Cursor
from scena.data.errors import EmptyDataError
from scena.data.stages.collate import split
from scena.data.stages.context import Work
from scena.data.stages.feed import feed_start, index_pieces, starts
from scena.data.stages.order import Whole
from scena.data.stages.parallel_stage import ParallelSegment
from scena.data.stages.stages import Piece
from scena.data.stages.stream_stage import StreamSegment


class InProcessEngine:
    """Yields batches from a cursor on, epoch after epoch."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._parallel: dict[int, ParallelSegment] = {}

    def batches(self, cursor: Cursor, repeat: bool) -> Iterator[Batch]:
        """The batches from `cursor` on; of one epoch only unless `repeat`."""
        keys = self.work.collator.keys()
        for piece, epoch in self.pieces(cursor, repeat):
            inputs, targets = split(keys, self.work.collator.collate(piece.samples))
            after = cursor_after(epoch, piece.number, piece.ordinals[-1] + 1, piece.after)
            batch = Batch(inputs, targets, *meta_and_size(self.work, piece, inputs or targets), after)
            yield batch if self.work.shard is None else self.work.shard.mark(batch, piece.after)

    def close(self) -> None:
        """Nothing to end."""

    def pieces(self, cursor: Cursor, repeat: bool) -> Iterator[tuple[Piece, int]]:
        """The samples of each batch, and its epoch."""
        while True:
            count = 0
            for piece in self._epoch(cursor):
                count += 1
                yield piece, cursor.epoch
            if not count and not cursor.batch and self.work.batching:
                raise empty(self.work)
            if not repeat:
                return
            cursor = Cursor(cursor.epoch + 1)

    def _epoch(self, cursor: Cursor) -> Iterator[Piece]:
        segments = self.work.segments
        positions = starts(segments, cursor.state)
        last = segments[-1]
        for piece in self._open(len(segments) - 1, cursor, positions):
            # in a pipeline of one segment, the feed has dropped it already
            short = last.parallel and len(segments) > 1 and self.work.batching and len(piece.samples) < last.piece
            if piece.samples and not (short and self.work.pipeline.batch_drop_remainder):
                yield piece

    def _open(self, place: int, cursor: Cursor, positions: list[Any]) -> Iterator[Piece]:
        work, segment = self.work, self.work.segments[place]
        if place:
            pieces = self._open(place - 1, cursor, positions)
        elif not segment.source:
            pieces = index_pieces(work, cursor.epoch, cursor, feed_start(work.segments, positions))
        if not segment.parallel:
            if place == 0 and not segment.source:
                pieces = self._loaded(pieces)
            stream = StreamSegment(work, place, cursor.epoch)
            yield from stream.run(None if segment.source else pieces, positions[place])
            return
        if place not in self._parallel:
            self._parallel[place] = ParallelSegment(work, segment)
        for piece in pieces:
            yield self._parallel[place].run(piece, cursor.epoch)

    def _loaded(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            self.work.load_into(piece)
            yield piece


def cursor_after(epoch: int, number: int, last: int, after: Any) -> Cursor:
    """The position after a batch.

    Args:
        epoch: its epoch.
        number: its place in the epoch.
        last: the position after its last sample.
        after: the position of the segment that made it, or the whole batch that it is a part of.
    """
    if isinstance(after, Whole):
        return Cursor(epoch, number + 1, after.stop)
    return Cursor(epoch, number + 1, last, after)


def meta_and_size(work: Work, piece: Piece, arrays: dict[str, Any]) -> tuple[list[Any], int]:
    """The meta and the number of samples of a batch."""
    if work.collator.whole_batches:
        meta = piece.samples[0].meta
        size = len(next(iter(arrays.values())))
        return (list(meta) if isinstance(meta, list | tuple) else [meta] * size), size
    return [sample.meta for sample in piece.samples], len(piece.samples)


def empty(work: Work) -> EmptyDataError:
    """The error of a data set without a batch."""
    source = type(work.generator).__name__
    params = work.generator.params if work.generator is not None else None
    hint = ""
    if work.pipeline.batch_drop_remainder:
        hint = (
            f" batch_drop_remainder is set: a source with fewer than {work.pipeline.batch_size} samples gives no batch."
        )
    if work.skipped is not None and work.skipped.identities:
        hint += f" {len(work.skipped.identities)} samples were left out because of errors."
    return EmptyDataError(
        f"The {work.mode.value} data is empty: {source} ({params}) gave no "
        f"{'batch' if hint else 'sample'}. Check its paths, lists and filters.{hint}"
    )
