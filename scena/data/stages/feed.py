"""Which samples a pipeline reads, and in which order: limits, shuffling, the shard of one process, the start of each stage."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scena.data.generator import DataGenerator
from scena.data.params import DataPipelineParams, PipelineMode
from scena.data.processor import takes_rng
from scena.data.sample import Batch, Cursor, Sample
from scena.data.stages.rng import LIMIT, LISTS, SHUFFLE, SOURCE, epoch_random
from scena.data.stages.stages import Chunk, Stage

if TYPE_CHECKING:
    from scena.data.stages.context import PipelineContext


def representative_order(count: int, rng: np.random.Generator, strata: Sequence[Any] | None = None) -> Any:
    """The indices 0 to `count` - 1 in a random order, each beginning of which represents the whole data set.

    With `strata`, the class of each index, each beginning holds the same share of each class.
    """
    order = rng.permutation(count)
    if strata is None:
        return order
    by_class = np.argsort(np.asarray(strata)[order], kind="stable")
    _, starts, sizes = np.unique(np.asarray(strata)[order][by_class], return_index=True, return_counts=True)
    ranks = np.arange(count) - np.repeat(starts, sizes)
    # member r of n of a class comes at (r + u) / n of the way: a random u decides which class is the first to have one more
    way = np.empty(count)
    way[by_class] = (ranks + np.repeat(rng.random(len(sizes)), sizes)) / np.repeat(sizes, sizes)
    return order[np.argsort(way, kind="stable")]


class Whole(NamedTuple):
    """The samples of a whole batch: where it starts and stops in the order of the epoch."""

    start: int
    stop: int


@dataclass(frozen=True)
class Shard:
    """Part `index` of `count` equal parts of each batch."""

    index: int
    count: int

    def bounds(self, size: int) -> tuple[int, int]:
        """Which of `size` samples belong to this part."""
        return size * self.index // self.count, size * (self.index + 1) // self.count

    def take(self, ordinals: range) -> range:
        """The ordinals of this shard; a single dummy if it has none, so that all processes step together."""
        first, last = self.bounds(len(ordinals))
        return ordinals[first:last] or ordinals[:1]

    def mark(self, batch: Batch, whole: Whole) -> Batch:
        """Stores in a batch the size of the whole one, and how many of its own samples count."""
        first, last = self.bounds(whole.stop - whole.start)
        batch.total, batch.counted = whole.stop - whole.start, last - first
        return batch


def cut(batches: Generator[Batch, None, None], shard: Shard) -> Generator[Batch, None, None]:
    """The shards of whole batches, for pipelines that cannot skip the samples of other shards."""
    with closing(batches):
        for batch in batches:
            rows = shard.take(range(batch.size))
            part = slice(rows.start, rows.stop)
            inputs, targets = ({name: array[part] for name, array in arrays.items()} for arrays in batch)
            kept = Batch(inputs, targets, batch.meta[part], len(rows), batch.cursor)
            yield shard.mark(kept, Whole(0, batch.size))


def limited_indices(generator: Any, params: DataPipelineParams, mode: PipelineMode, seed: int) -> Sequence[int]:
    """The indices that a pipeline reads of a source with random access, ascending: all, or those of the limit.

    The samples of a limit represent the whole source; those of a smaller limit are among those of a larger one. Predictions read the
    first samples instead.
    """
    count = len(generator)
    if params.limit is None or params.limit >= count:
        return range(count)
    if mode is PipelineMode.PREDICTION or params.limit_from_start:
        return range(params.limit)
    order = representative_order(count, epoch_random(seed, 0, LIMIT), generator.strata())
    chosen: Any = np.sort(order[: params.limit])
    return chosen


def epoch_indices(generator: Any, chosen: Sequence[int], params: DataPipelineParams, mode: PipelineMode, seed: int,
                  epoch: int) -> Sequence[int]:  # fmt: skip
    """The `chosen` indices of a source with random access in the order of one epoch."""
    if mode is not PipelineMode.TRAINING or params.shuffle_buffer_size == 0:
        return chosen
    own: Sequence[int] | None = generator.epoch_order(epoch_random(seed, epoch, LISTS), chosen)
    if own is not None:
        return own
    order: Any = epoch_random(seed, epoch, SHUFFLE).permutation(len(chosen))
    return order if isinstance(chosen, range) else np.asarray(chosen)[order]


def stream_samples(generator: DataGenerator[Any], params: DataPipelineParams, mode: PipelineMode, seed: int,
                   epoch: int) -> Iterator[Sample]:  # fmt: skip
    """The samples of one epoch of a stream, numbered, limited and shuffled within a buffer."""
    if takes_rng(generator.generate, 0):
        samples: Iterable[Sample] = generator.generate(epoch_random(seed, epoch, SOURCE))  # type: ignore[call-arg]
    else:
        samples = generator.generate()
    if hasattr(samples, "as_numpy_iterator"):
        from scena.data.tensorflow.dataset import dataset_samples

        samples = dataset_samples(samples)
    numbered = _numbered(islice(samples, params.limit))
    if mode is PipelineMode.TRAINING and params.shuffle_buffer_size:
        return shuffle_buffer(numbered, params.shuffle_buffer_size, epoch_random(seed, epoch, SHUFFLE))
    return numbered


def _numbered(samples: Iterable[Sample]) -> Iterator[Sample]:
    for index, sample in enumerate(samples):
        if isinstance(sample, Sample):  # anything else is refused where it is received
            sample.index = index
        yield sample


def shuffle_buffer(items: Iterable[Sample], size: int, rng: np.random.Generator) -> Iterator[Sample]:
    """Yields items in a random order by drawing from a buffer of `size` of them."""
    buffer: list[Sample] = []
    for item in items:
        if len(buffer) < size:
            buffer.append(item)
            continue
        chosen = int(rng.integers(size))
        yield buffer[chosen]
        buffer[chosen] = item
    for chosen in rng.permutation(len(buffer)):
        yield buffer[chosen]


def index_chunks(context: "PipelineContext", epoch: int, cursor: Cursor, start: Any) -> Iterator[Chunk]:
    """The chunks of an epoch for the first stage: from `cursor` on if it makes batches, else from `start`, the next stage's position."""
    order = context.order(epoch)
    stage = context.stages[0]
    size, total = stage.chunk_size, len(order)

    def chunk_of(number: int, ordinals: range, whole: Whole | None = None) -> Chunk:
        return Chunk(number, ordinals, indices=order[ordinals.start : ordinals.stop], after=whole)

    if stage.parallel and stage.batches:
        number = cursor.batch
        for first in range(cursor.samples, total, size):
            ordinals = range(first, min(first + size, total))
            if len(ordinals) < size and context.pipeline.batch_drop_remainder:
                return
            if context.shard is None:
                yield chunk_of(number, ordinals)
            else:
                yield chunk_of(number, context.shard.take(ordinals), Whole(ordinals.start, ordinals.stop))
            number += 1
        return
    following = 0
    if start and stage.generating:  # a chunk is replayed as a whole; the reader drops what was consumed
        following = min([start["next"], *start["pending"]])[0]
    elif start:
        for number, offset in start["pending"]:  # samples that were read but not handed out are read again, one by one
            yield chunk_of(number, range(number * size + offset, number * size + offset + 1))
        number, offset = start["next"]
        ordinals = range(number * size + offset, min((number + 1) * size, total))
        if offset and len(ordinals):
            yield chunk_of(number, ordinals)
        following = number + bool(offset)
    for number in range(following, -(-total // size)):
        yield chunk_of(number, range(number * size, min((number + 1) * size, total)))


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
