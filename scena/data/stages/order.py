"""The order in which samples leave the source, and the part of it that one of several processes makes."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from scena.data.batch import Arrays, Batch
from scena.data.generator import DataGenerator
from scena.data.params import DataPipelineParams, PipelineMode
from scena.data.processor import takes_rng
from scena.data.sample import Sample
from scena.data.stages.rng import LIMIT, LISTS, SHUFFLE, SOURCE, epoch_random
from scena.data.stages.selection import representative_order


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


T = TypeVar("T")


def limited_indices(generator: Any, params: DataPipelineParams, mode: PipelineMode, seed: int) -> Sequence[int]:
    """The indices that a pipeline reads of a source with random access, ascending: all, or those of the limit.

    The samples of a limit stand for the whole source; those of a smaller limit are among those of a larger one. Predictions
    answer the first samples instead.
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


def shuffle_buffer(items: Iterable[T], size: int, rng: np.random.Generator) -> Iterator[T]:
    """Yields items in a random order by drawing from the last `size` of them."""
    buffer: list[T] = []
    for item in items:
        if len(buffer) < size:
            buffer.append(item)
            continue
        stage_index = int(rng.integers(size))
        yield buffer[stage_index]
        buffer[stage_index] = item
    for stage_index in rng.permutation(len(buffer)):
        yield buffer[stage_index]
