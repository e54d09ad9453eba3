"""In which order samples leave the source: permutations for random access, a buffer for streams."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from scena.data.generator import DataGenerator
from scena.data.modes import PipelineMode
from scena.data.params import DataPipelineParams
from scena.data.processor import takes_rng
from scena.data.rng import LISTS, SHUFFLE, SOURCE, epoch_random
from scena.data.sample import Sample

T = TypeVar("T")


def epoch_indices(
    generator: Any, params: DataPipelineParams, mode: PipelineMode, seed: int, epoch: int
) -> Sequence[int]:
    """The indices of one epoch of a source with random access, in their order."""
    count = len(generator)
    shuffled = mode is PipelineMode.TRAINING and params.shuffle_buffer_size != 0
    if shuffled:
        own: Sequence[int] | None = generator.epoch_order(epoch_random(seed, epoch, LISTS))
        if own is not None:
            return own[: params.limit] if params.limit else own
    if params.limit:
        count = min(count, params.limit)
    if not shuffled:
        return range(count)
    order: Sequence[int] = epoch_random(seed, epoch, SHUFFLE).permutation(count)  # type: ignore[assignment]
    return order


def stream_samples(generator: DataGenerator[Any], params: DataPipelineParams, mode: PipelineMode, seed: int,
                   epoch: int) -> Iterator[Sample]:  # fmt: skip
    """The samples of one epoch of a stream, numbered, limited and shuffled within a buffer."""
    if takes_rng(generator.generate, 0):
        samples: Iterable[Sample] = generator.generate(epoch_random(seed, epoch, SOURCE))  # type: ignore[call-arg]
    else:
        samples = generator.generate()
    if hasattr(samples, "as_numpy_iterator"):
        from scena.data.tfdata import dataset_samples

        samples = dataset_samples(samples)
    numbered = _numbered(islice(samples, params.limit))
    if mode is PipelineMode.TRAINING and params.shuffle_buffer_size:
        return shuffle_buffer(numbered, params.shuffle_buffer_size, epoch_random(seed, epoch, SHUFFLE))
    return numbered


def _numbered(samples: Iterable[Sample]) -> Iterator[Sample]:
    for index, sample in enumerate(samples):
        sample.index = index
        yield sample


def shuffle_buffer(items: Iterable[T], size: int, rng: np.random.Generator) -> Iterator[T]:
    """Yields items in a random order by drawing from the last `size` of them."""
    buffer: list[T] = []
    for item in items:
        if len(buffer) < size:
            buffer.append(item)
            continue
        place = int(rng.integers(size))
        yield buffer[place]
        buffer[place] = item
    for place in rng.permutation(len(buffer)):
        yield buffer[place]
