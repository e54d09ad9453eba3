"""What can be set about data: sources, processors and the pipeline that runs them. Pure Python, no numpy."""

import ast
import functools
import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from typing import Any, Self, TypeVar

from scena.errors import ParamsError
from scena.params.declare import Params, param


class PipelineMode(StrEnum):
    """The use of a pipeline; decides which processors run and which of inputs and targets reach the batch."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    PREDICTION = "prediction"
    TARGETS = "targets"

    @property
    def has_inputs(self) -> bool:
        return self is not PipelineMode.TARGETS

    @property
    def has_targets(self) -> bool:
        return self is not PipelineMode.PREDICTION


TProcessor = TypeVar("TProcessor", bound="DataProcessorParams")


class DataGeneratorParams(Params, abstract=True):
    """Where samples come from. Subclass it with `builds=".data:MyGenerator"`."""

    def parts(self) -> "dict[str, DataGeneratorParams]":
        """The sources that are validated one by one, by name: a list-file source has one for each list."""
        return {"": self}

    def for_training(self) -> "DataGeneratorParams":
        """The training side of a source that is trained and validated on; default: its mode tells a generator which it is."""
        return self

    def for_validation(self) -> "DataGeneratorParams":
        """The validation side of a source that is trained and validated on."""
        return self


class FoldSourceParams(DataGeneratorParams, builds=".sources.fold:FoldSource"):
    """The samples of a source with random access that a fold of a cross-validation trains on, or tests."""

    source: DataGeneratorParams = param(required=True, help="all samples")
    file: str = param(required=True, help="the file of folds that `scena cv` wrote")
    digest: str = param(required=True, help="the digest of the folds in it")
    repeat: int = param(0, ge=0, help="which repeat")
    number: int = param(0, ge=0, help="which fold is tested")
    test: bool = param(False, help="whether to read the fold itself instead of all others")


class FoldParams(Params):
    """The fold of a cross-validation that a training leaves out; `scena cv` sets it."""

    file: str | None = param(None, hidden=True, help="the file of folds that `scena cv` wrote")
    digest: str = param("", hidden=True, help="the digest of the folds in it")
    repeat: int = param(0, ge=0, hidden=True, help="which repeat")
    number: int = param(0, ge=0, hidden=True, help="which fold is tested")

    def of(self, source: DataGeneratorParams, *, test: bool = False) -> DataGeneratorParams:
        """What is trained on, or tested, of all samples of a source; the source itself without cross-validation."""
        if self.file is None:
            return source
        return FoldSourceParams(
            source=source, file=self.file, digest=self.digest, repeat=self.repeat, number=self.number, test=test
        )


class DataProcessorParams(Params, abstract=True):
    """One step of a processor pipeline. Subclass it with `builds=".processors:MyProcessor"`."""

    modes: set[PipelineMode] = param(set(PipelineMode), help="modes in which the processor is applied")


class DataProcessorPipelineParams(Params, abstract=True, builds=".pipeline:SamplePipeline"):
    """Processors in the order in which they are applied."""

    def sequences(self) -> "list[SequentialProcessorPipelineParams]":
        """The pipeline as sequences of processors."""
        raise NotImplementedError(f"{type(self).__name__} must say which sequences of processors it consists of.")

    def find(self, kind: type[TProcessor]) -> list[TProcessor]:
        """All processors of a type, in order."""
        return [processor for processor in self if isinstance(processor, kind)]

    def replace_all(self, kind: type["DataProcessorParams"], by: "DataProcessorParams") -> int:
        """Replaces each processor of type `kind` with a copy of `by`; returns how many there were."""
        count = 0
        for sequence in self.sequences():
            for index, processor in enumerate(sequence.processors):
                if isinstance(processor, kind):
                    sequence.processors[index] = by.replace()
                    count += 1
        return count

    def erase_all(self, kind: type["DataProcessorParams"]) -> int:
        """Removes each processor of type `kind`; returns how many there were."""
        count = 0
        for sequence in self.sequences():
            kept = [processor for processor in sequence.processors if not isinstance(processor, kind)]
            count += len(sequence.processors) - len(kept)
            sequence.processors[:] = kept
        return count

    def __iter__(self) -> Iterator["DataProcessorParams"]:
        for sequence in self.sequences():
            yield from sequence.processors


class SequentialProcessorPipelineParams(DataProcessorPipelineParams):
    """A list of processors, one after the other."""

    run_parallel: bool = param(True, help="run these processors in all workers; else one sees all samples in order")
    processors: list[DataProcessorParams] = param([], help="the processors, in order")

    def sequences(self) -> "list[SequentialProcessorPipelineParams]":
        return [self]


class ComposedProcessorPipelineParams(DataProcessorPipelineParams):
    """Groups of processors, each parallel or not."""

    groups: list[SequentialProcessorPipelineParams] = param([], help="the groups, in order")

    def sequences(self) -> "list[SequentialProcessorPipelineParams]":
        return self.groups


class DataBaseParams(Params):
    """The data of a scenario: how samples are processed before and after the model."""

    pre_proc: DataProcessorPipelineParams = param(SequentialProcessorPipelineParams(), help="before the model")
    post_proc: DataProcessorPipelineParams = param(SequentialProcessorPipelineParams(), help="after the model")

    @classmethod
    def __initial__(cls) -> Self:
        """Fresh parameters as the data class sets them up with `default_params`."""
        if cls.__builds__ is None or not _may_override(cls.__builds__):
            return cls()
        implementation = cls.implementation()
        made = implementation.default_params()
        if type(made) is cls:
            return made
        if not issubclass(cls, type(made)):
            raise ParamsError(
                f"{implementation.__name__}.{_METHOD}() must return {cls.__name__}, whose `builds` names it. "
                f"Received: {type(made).__name__}."
            )
        # `cls` is a subclass of what the data class knows: what it changes counts, the rest is `cls`'s own
        plain, names = type(made)(), type(made).__params__
        return cls(**{name: made.given(name) for name in names if made.given(name) != plain.given(name)})


_METHOD = "default_params"
_HARMLESS = {"Generic", "Protocol", "ABC", "object"}


def _may_override(builds: str) -> bool:
    """Whether a data class may have a `default_params` of its own.

    Its source is looked at first, and it is imported only if it may have one, so that `--help` of other scenarios needs no numpy.
    """
    module, _, name = builds.partition(":")
    if module.startswith("scena.") and not module.startswith("scena.examples."):
        return False
    if module in sys.modules:
        bases = getattr(getattr(sys.modules[module], name, None), "__mro__", ())
        return any(_METHOD in vars(base) and base.__module__ != "scena.data.database" for base in bases)
    return _source_may_override(module, name)


@functools.cache
def _source_may_override(module: str, name: str) -> bool:
    from scena.storage.code_fingerprints import locate

    path, _ = locate(module)
    try:
        tree = ast.parse(path.read_bytes()) if path is not None else None
    except (OSError, SyntaxError, ValueError):
        tree = None
    return tree is None or _overrides(tree, name)


def _overrides(tree: ast.Module, name: str) -> bool:
    """Whether a class, or one of its bases, has a `default_params`; also True if the source does not tell."""
    found = next((item for item in tree.body if isinstance(item, ast.ClassDef) and item.name == name), None)
    if found is None or any(getattr(item, "name", None) == _METHOD for item in found.body):
        return True
    imports = [item for item in tree.body if isinstance(item, ast.ImportFrom) and not item.level]
    ours = [alias for item in imports if f"{item.module}.".startswith("scena.") for alias in item.names]
    harmless = _HARMLESS | {alias.asname or alias.name for alias in ours}
    bases = [ast.unparse(base).partition("[")[0] for base in found.bases]
    return any(not base.startswith("scena.") and base not in harmless and _overrides(tree, base) for base in bases)


LARGEST = 10**9
"""More than any memory holds."""


class DataPipelineParams(Params):
    """How samples become batches."""

    batch_size: int = param(
        16,
        ge=1,
        help="samples in a batch",
        common=True,
        known_as=["train_batch_size", "per_device_train_batch_size", "per_device_eval_batch_size"],
    )
    limit: int | None = param(
        None,
        ge=1,
        common=True,
        help="use this many samples, drawn from the whole source (the first ones of a stream, and in predict)",
        known_as=[
            "limit_train_batches",
            "limit_val_batches",
            "max_train_samples",
            "max_eval_samples",
            "overfit_batches",
        ],
    )
    engine: str = param("python", choices=["python"], plugin="Engine", help="what makes the batches")
    limit_from_start: bool = param(False, hidden=True, help="a limit takes the first samples, as predictions want it")
    num_processes: int | None = param(
        None,
        ge=0,
        le=1000,
        help="worker processes; 0: everything in this process, where a debugger stops; default: start in this process, and "
        "continue with one worker per core if that pays",
        affects_results=False,
        common=True,
        known_as=["num_workers", "dataloader_num_workers"],
    )
    prefetch: int = param(
        32,
        ge=1,
        aliases=["prefech"],
        help="batches that workers prepare ahead",
        affects_results=False,
        known_as=["prefetch_factor", "max_queue_size"],
    )
    preload: bool = param(
        False,
        affects_results=False,
        help="run the processors before the first random one only once, and keep the samples in memory",
    )
    cache_dir: str | None = param(
        None,
        affects_results=False,
        help="as preload, but keep the samples in this folder, until parameters or code change",
    )
    batch_drop_remainder: bool = param(
        False,
        help="drop the samples that do not fill a batch at the end of an epoch",
        known_as=["drop_last", "dataloader_drop_last", "drop_remainder"],
    )
    shuffle_buffer_size: int | None = param(
        None,
        ge=0,
        help="training: 0 keeps the order; otherwise a source with random access is shuffled completely, and a stream "
        "within a buffer of this size (default: not at all)",
        known_as=["shuffle"],
    )
    bucket_boundaries: list[int] = param(
        [], gt=0, help="lengths that separate buckets: batches have samples of similar length"
    )
    bucket_batch_sizes: list[int] = param([], ge=1, help="batch size of each bucket (one more than boundaries)")
    bucket_by: str | None = param(
        None,
        help="the input or target whose first axis is the length; default: the largest variable axis of the inputs",
    )
    on_error: str = param("raise", choices=["raise", "skip"], help="whether a sample that fails raises, or is skipped")
    max_skipped: int | None = param(None, ge=0, help="stop after all if more samples than this failed (on_error skip)")
    on_worker_death: str = param(
        "raise",
        choices=["raise", "restart"],
        affects_results=False,
        help="whether to stop if a worker is killed, or to restart exactly",
    )

    def __post_init__(self) -> None:
        boundaries, sizes = self.bucket_boundaries, self.bucket_batch_sizes
        if any(later <= earlier for earlier, later in pairwise(boundaries)):
            raise ParamsError(f"bucket_boundaries must increase. Received: {boundaries}")
        if sizes and len(sizes) != len(boundaries) + 1:
            raise ParamsError(
                f"bucket_batch_sizes needs one size more than there are bucket_boundaries ({len(boundaries)}): the "
                f"last one is for lengths from the last boundary on. Received: {sizes}"
            )
        numbers = [number for number in (self.batch_size, *sizes, *boundaries) if isinstance(number, int)]
        if (largest := max(numbers, default=0)) > LARGEST:
            raise ParamsError(f"batches and lengths are at most {LARGEST:,}. Received: {largest}")
        if self.max_skipped is not None and self.on_error != "skip":
            raise ParamsError(
                f"max_skipped={self.max_skipped} has no effect while on_error is {self.on_error!r}, which stops at the first "
                "sample that fails. Set on_error=skip, or do not set max_skipped."
            )


RULES = 1
"""Stored with a run. 1: a limit draws from the whole source, and automatic splits hold each class's share."""


def tell_of_rules(stored: Any, what: str) -> None:
    """Logs one line if a run was made when limits and automatic splits chose other samples."""
    if not isinstance(stored, int) or stored < RULES:
        import logging  # --help does not need it

        logging.getLogger("scena.data").warning(
            "%s was made by an earlier Scena: a limit took the first samples then, and the automatic validation split was "
            "another one. If the run has either, it now sees other samples.",
            what,
        )
