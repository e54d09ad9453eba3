"""Where samples come from."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from scena.data.params import DataGeneratorParams, PipelineMode
from scena.data.sample import Sample
from scena.overriding import Overridable

P = TypeVar("P", bound=DataGeneratorParams)


class DataGenerator(Overridable, ABC, Generic[P]):
    """Yields the samples of one epoch, in the same order each time.

    Define `__len__` where the number is known. Define `__getitem__` too where a sample can be read by its index: then
    shuffling is complete, resuming costs nothing and each worker reads its own samples.
    """

    whole_batches: ClassVar[bool] = False
    """True if each sample is a batch already: arrays with a leading batch dimension; `batch_size` is not applied."""

    main_process: bool = False
    """True if it must run in the training process (it needs TensorFlow, or an open connection)."""

    def __init__(self, params: P, mode: PipelineMode) -> None:
        self.params = params
        self.mode = mode

    @abstractmethod
    def generate(self) -> Iterable[Sample]:
        """The samples of one epoch. May take a second argument `rng`, a generator of random numbers for this epoch."""

    def check_restart(self, epoch: int, samples: int) -> None:
        """Called before a pipeline resumes after `samples` samples of `epoch`; raises if the source cannot give the rest."""

    def fingerprint(self) -> Any:
        """What an on-disk cache of its samples depends on beside the parameters: the state of the files it reads."""
        return None

    def epoch_order(self, rng: np.random.Generator, chosen: Sequence[int]) -> Sequence[int] | None:
        """With random access: the indices of one training epoch, if they are not just a permutation of the `chosen` ones."""
        return None

    def strata(self) -> Sequence[Any] | None:
        """With random access: the class of each sample, where it is known without reading them; a limit takes its share of each."""
        return None


class RandomAccessGenerator(DataGenerator[P]):
    """A source whose samples are read by index; `__len__` and `__getitem__` are all it needs."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of samples."""

    @abstractmethod
    def __getitem__(self, index: int) -> Sample:
        """The sample at `index`."""

    def generate(self) -> Iterable[Sample]:
        return (self[index] for index in range(len(self)))


class SequenceGenerator(RandomAccessGenerator[Any]):
    """Samples that are in memory already."""

    main_process = True

    def __init__(self, samples: Sequence[Sample], mode: PipelineMode) -> None:
        super().__init__(None, mode)
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Sample:
        return self.samples[index]


class IterableGenerator(DataGenerator[Any]):
    """Any iterable of samples; it is iterated once per epoch."""

    main_process = True

    def __init__(self, samples: Iterable[Sample], mode: PipelineMode) -> None:
        super().__init__(None, mode)
        self.samples = samples

    def generate(self) -> Iterable[Sample]:
        return self.samples


def has_random_access(generator: DataGenerator[Any]) -> bool:
    return hasattr(generator, "__getitem__") and hasattr(generator, "__len__")


def is_one_shot(generator: DataGenerator[Any] | None) -> bool:
    """Whether reading the samples uses them up: a Python generator, an open file and the like."""
    return isinstance(generator, IterableGenerator) and isinstance(generator.samples, Iterator)


def is_shared(source: Any) -> bool:
    """Whether worker processes read the same open file."""
    return isinstance(source, DataGenerator) and hasattr(source, "descriptor")


def as_generator(source: Any, mode: PipelineMode) -> DataGenerator[Any]:
    """`source` (parameters, a generator, a list or an iterable of samples) as a DataGenerator."""
    if isinstance(source, DataGenerator):
        return source
    if isinstance(source, DataGeneratorParams):
        created: DataGenerator[Any] = source.create(mode)
        return created
    if hasattr(source, "as_numpy_iterator"):
        from scena.data.tensorflow.dataset import DatasetSource

        return DatasetSource(source, mode)
    if isinstance(source, Sequence):
        return SequenceGenerator(source, mode)
    if isinstance(source, Iterable):
        return IterableGenerator(source, mode)
    kind = type(source).__name__
    raise TypeError(
        f"A source of samples is DataGeneratorParams, a DataGenerator or an iterable of Sample. Received: {kind}"
    )
