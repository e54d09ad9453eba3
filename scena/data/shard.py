"""Dividing batches among processes that train together: each makes and keeps its part, and knows of the whole."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from scena.data.batch import Arrays, Batch


class Whole(NamedTuple):
    """The samples of a whole batch: where it starts and stops in the order of the epoch."""

    start: int
    stop: int


@dataclass(frozen=True)
class Shard:
    """One of several equal parts of each batch.

    Attributes:
        index: which part.
        count: how many there are.
    """

    index: int
    count: int

    def bounds(self, size: int) -> tuple[int, int]:
        """Which of `size` samples belong to this part."""
        return size * self.index // self.count, size * (self.index + 1) // self.count

    def take(self, ordinals: range) -> range:
        """The ordinals that this part reads: its own; or the first of all, to keep step with the others, if none is its own."""
        first, last = self.bounds(len(ordinals))
        return ordinals[first:last] or ordinals[:1]

    def mark(self, batch: Batch, whole: Whole) -> Batch:
        """Notes in a batch how large the whole is, and how many of its own samples count."""
        first, last = self.bounds(whole.stop - whole.start)
        batch.total, batch.counted = whole.stop - whole.start, last - first
        return batch


def cut(batches: Iterator[Batch], shard: Shard) -> Iterator[Batch]:
    """Parts of whole batches, for pipelines that cannot leave out what belongs to others."""
    with closing(batches):  # type: ignore[type-var]
        for batch in batches:
            rows = shard.take(range(batch.size))
            part = slice(rows.start, rows.stop)
            inputs, targets = _rows(batch.inputs, part), _rows(batch.targets, part)
            kept = Batch(inputs, targets, batch.meta[part], len(rows), batch.cursor)
            yield shard.mark(kept, Whole(0, batch.size))


def _rows(arrays: Arrays, part: slice) -> Arrays:
    return {name: array[part] for name, array in arrays.items()}
