"""Runs a segment that sees the whole stream in order, and knows the position after each piece it gives."""

from collections.abc import Iterable, Iterator
from typing import Any

from scena.data.stages.buckets import Buckets
from scena.data.stages.context import Work
from scena.data.stages.mapping import MappingStep
from scena.data.stages.parallel_stage import Address, GeneratingStep, Item, map_items, source_items
from scena.data.stages.stages import Piece, Segment


class StreamSegment:
    """A serial segment of one epoch.

    Its position is a JSON value: `piece` and `out` count what it gave. If all of it can be restored, `next` is the
    address (piece, offset) of the next sample it takes, `pending` those that wait in buckets, `states` those of
    generating processors, `in` the position of the segment before it; otherwise it starts the epoch again and drops
    what it gave.
    """

    def __init__(self, work: Work, place: int, epoch: int) -> None:
        segments = work.segments
        self.work = work
        self.segment: Segment = segments[place]
        self.epoch = epoch
        upstream = segments[place - 1] if place else self.segment
        self._piece = upstream.piece if upstream.parallel or not place else upstream.out_piece
        self._pairs = place > 0 and upstream.generating
        self.exact = self.segment.exact
        self._generating: list[GeneratingStep] = []
        self._next: Address = (0, 0)
        self._before: dict[int, Any] = {}
        self._buckets = Buckets(work, self.segment.batches, self.segment.out_piece)

    def run(self, pieces: Iterable[Piece] | None, position: Any) -> Iterator[Piece]:
        """The pieces (or the samples of batches) it makes from `position` on; `pieces` is None for a source."""
        number, out = (position["piece"], position["out"]) if position else (0, 0)
        restored = position if self.exact else None
        dropped = 0 if self.exact else number
        if pieces is None:
            countable = not self.segment.generating and not self._buckets.boundaries and self.work.skipped is None
            items = source_items(self.work, self.epoch, out if countable else 0)
            dropped = 0 if countable else number
        else:
            items = self._read(pieces, restored)
        given, count = (0, 0) if dropped else (number, out)
        for samples in self._buckets.cut(self._apply(items, restored)):
            first = count
            count += len(samples)
            given += 1
            if given > dropped:
                yield Piece(given - 1, range(first, count), samples, after=self._position(given, count))

    def _apply(self, items: Iterator[Item], position: Any) -> Iterator[Item]:
        mapping: list[MappingStep] = []
        for step in self.segment.steps:
            if not step.generating:
                mapping.append(self.work.mapping(step))
                continue
            if mapping:
                items = map_items(self.work, mapping, items, self.epoch)
                mapping = []
            generating = GeneratingStep(self.work, step, self.epoch)
            if position:
                generating.restore(position["states"][len(self._generating)])
            self._generating.append(generating)
            items = generating.run(items)
        return map_items(self.work, mapping, items, self.epoch) if mapping else items

    def _read(self, pieces: Iterable[Piece], position: Any) -> Iterator[Item]:
        start: Address = (0, 0)
        pending: set[Address] = set()
        if position:
            start = (position["next"][0], position["next"][1])
            pending = {(piece, offset) for piece, offset in position["pending"]}
            self._next = start
            self._before[min([start, *pending])[0]] = position["in"]
        for piece in pieces:
            offsets = piece.offsets if piece.offsets is not None else range(len(piece.samples))
            self._before[piece.number + 1] = piece.after
            last = len(piece.samples) - 1
            for row, (sample, offset) in enumerate(zip(piece.samples, offsets, strict=True)):
                address = (piece.number, offset)
                if address < start and address not in pending:
                    continue
                self._next = max(start, (piece.number + 1, 0) if row == last else (piece.number, offset + 1))
                self._buckets.arriving = address
                if self._pairs:
                    yield sample, piece.number, offset + 1
                else:
                    yield sample, piece.number * self._piece + offset, 0
            self._next = max(start, (piece.number + 1, 0))
            oldest = self._oldest()
            for known in [known for known in self._before if known < oldest]:
                del self._before[known]

    def _oldest(self) -> int:
        return min([self._next, *self._buckets.pending()])[0]

    def _position(self, given: int, count: int) -> Any:
        if not self.exact:
            return {"piece": given, "out": count}
        return {
            "piece": given,
            "out": count,
            "next": list(self._next),
            "pending": sorted(list(address) for address in self._buckets.pending()),
            "states": [generating.snapshot() for generating in self._generating],
            "in": self._before.get(self._oldest()),
        }
