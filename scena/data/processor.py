"""What happens to samples between source and batch: mapping (1 to 1) and generating (N to M) processors."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar

from scena.data.params import DataBaseParams, DataProcessorParams, PipelineMode
from scena.data.sample import Sample
from scena.overriding import Overridable

P = TypeVar("P", bound=DataProcessorParams)


class DataProcessor(Overridable, ABC, Generic[P]):
    """Base of all processors. It is created from its params in the process that runs it."""

    def __init__(self, params: P, data_params: DataBaseParams, mode: PipelineMode) -> None:
        self.params = params
        self.data_params = data_params
        self.mode = mode


class MappingDataProcessor(DataProcessor[P]):
    """Makes one sample of one sample. Implement `apply(self, sample)`, or `apply(self, sample, rng)` if it is random.

    `rng` is a numpy Generator whose numbers depend on (seed, epoch, index of the sample) only; use it instead of global
    random state, then batches are the same for any number of processes and after a restart.
    """

    # The signature is open on purpose: both apply(sample) and apply(sample, rng) are valid implementations.
    apply: Callable[..., Sample]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not callable(getattr(cls, "apply", None)):
            raise TypeError(f"{cls.__name__} must define apply(self, sample) or apply(self, sample, rng).")


class GeneratingDataProcessor(DataProcessor[P]):
    """Makes M samples of N samples: it may drop, repeat, split, join or reorder them.

    It sees the whole stream of an epoch in order, in one process. With a `chunk_size` it sees that many samples at a time instead,
    and chunks run in parallel. If it keeps something from sample to sample, `state()` and `restore()` make a restart cheap; without
    them a restart replays the epoch (or the chunk) up to the position.
    """

    chunk_size: ClassVar[int | None] = None
    """Samples per independent chunk; a field `chunk_size` of the params takes precedence."""

    @abstractmethod
    def generate(self, samples: Iterable[Sample]) -> Iterable[Sample]:
        """The samples made of `samples`. May take a second argument `rng`, a numpy Generator."""


def takes_rng(method: Callable[..., Any], arguments: int = 1) -> bool:
    """Whether a bound method accepts a generator of random numbers after its `arguments` own ones."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(method).parameters.values()
    return sum(parameter.kind in kinds for parameter in parameters) > arguments


class Step:
    """One processor of a pipeline as the planner sees it: its params, its number, and how it may run."""

    __slots__ = ("chunk", "generating", "name", "number", "parallel", "params", "resumable")

    def __init__(self, params: DataProcessorParams, number: int, run_parallel: bool) -> None:
        implementation = type(params).implementation()
        self.params = params
        self.number = number
        self.name = implementation.__name__
        self.generating = issubclass(implementation, GeneratingDataProcessor)
        if not self.generating and not issubclass(implementation, MappingDataProcessor):
            kinds = "a MappingDataProcessor nor a GeneratingDataProcessor"
            raise TypeError(
                f"{type(params).__name__} builds {self.name}, which is neither {kinds}: derive it from one of them."
            )
        chunk = getattr(params, "chunk_size", None) or getattr(implementation, "chunk_size", None)
        self.chunk: int | None = int(chunk) if self.generating and chunk else None
        self.parallel = run_parallel and (not self.generating or self.chunk is not None)
        restorable = hasattr(implementation, "state") and hasattr(implementation, "restore")
        self.resumable = restorable or not self.generating


def steps_of(pipeline: Any, mode: PipelineMode) -> list[Step]:
    """The processors of a pipeline that apply in `mode`, numbered by their position in the whole pipeline."""
    every = ((params, sequence) for sequence in pipeline.sequences() for params in sequence.processors)
    numbered = enumerate(every, 1)
    return [Step(params, number, within.run_parallel) for number, (params, within) in numbered if mode in params.modes]
