"""The context of a pipeline: source, processors, specs and settings, the same here and in each worker."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scena.data.generator import DataGenerator, as_generator, has_random_access, is_shared
from scena.data.params import DataBaseParams, DataPipelineParams, DataProcessorPipelineParams, PipelineMode
from scena.data.processor import Step, steps_of, takes_rng
from scena.data.sample import Sample
from scena.data.stages.collate import Collator
from scena.data.stages.feed import Shard, epoch_indices, limited_indices
from scena.data.stages.mapping import MappingStep, ReuseWatch, Skipped, cause, read_only
from scena.data.stages.rng import SampleRandom
from scena.data.stages.stages import Chunk, Stage, plan_stages
from scena.errors import DataError, SampleError
from scena.params.declare import Params

if TYPE_CHECKING:
    from scena.data.benchmark import Clock


@dataclass(kw_only=True, eq=False)
class PipelineContext:
    """Describes one pipeline, and does its part of it in one process.

    The data class creates it, workers create the same from its fields (engines/workers/config.py), and `dataclasses.replace` makes
    variants: some of the processors, other settings, another source.
    """

    mode: PipelineMode
    pipeline: DataPipelineParams
    data: DataBaseParams
    processors: DataProcessorPipelineParams
    collator: Collator
    source: Any
    """Parameters, a generator or samples; None in a worker if the training process reads it."""
    seed: int = 0
    batching: bool = True
    """Whether the pipeline ends in batches; else in samples."""
    random_access: bool | None = None
    """Whether the source is read by index; None: ask the generator."""
    first_step: int = 0
    last_step: int | None = None
    """Which processors it runs, of those that apply in this mode; the others run before or after it."""
    generator: DataGenerator[Any] | None = None
    """The open source."""
    skipped: Skipped | None = None
    """Samples that failed, if the pipeline skips them. Variants share it."""
    clock: "Clock | None" = None
    """Measures what each part takes."""
    shard: Shard | None = None
    """The part of each batch that is made, if several processes share it; only where `can_shard`."""

    def __post_init__(self) -> None:
        if self.generator is None and self.source is not None:  # not by its truth, which may ask for an unknown length
            self.generator = as_generator(self.source, self.mode)
        local = not (isinstance(self.source, Params) or is_shared(self.source))
        self.main_source = self.generator is None or self.generator.main_process or local
        """Whether the source stays in the training process (in a worker: it is not here)."""
        if self.random_access is None:
            self.random_access = self.generator is not None and has_random_access(self.generator)
        if self.skipped is None and self.pipeline.on_error == "skip":
            self.skipped = Skipped(self.pipeline.max_skipped)
        self.steps: list[Step] = steps_of(self.processors, self.mode)[self.first_step : self.last_step]
        """The processors that it runs."""
        single = self.collator.whole_batches or not (self.batching or self.pipeline.num_processes)
        self.stages: list[Stage] = plan_stages(
            self.steps,
            random_access=self.random_access and not self.main_source,
            main_source=self.main_source,
            batch_size=1 if single else self.pipeline.batch_size,
            bucketing=bool(self.pipeline.bucket_boundaries) and self.batching,
            skipping=self.skipped is not None,
        )
        self._chosen: Sequence[int] | None = None
        self._watch = self.watch(type(self.generator).__name__)
        self._order: tuple[int, Sequence[int]] = (-1, ())
        self._random: tuple[int, SampleRandom] | None = None

    @property
    def can_shard(self) -> bool:
        """Whether the samples of a batch are known by their index, so that a part of it can be made alone."""
        only = self.stages[0]
        return len(self.stages) == 1 and only.parallel and only.batches and not self.collator.whole_batches

    def small(self, batch_size: int | None) -> "PipelineContext":
        """The same pipeline without buckets and with smaller batches, unless each batch must have its full size."""
        changes: dict[str, Any] = {"bucket_boundaries": [], "bucket_batch_sizes": [], "bucket_by": None}
        if batch_size is not None and not self.pipeline.batch_drop_remainder:
            changes["batch_size"] = min(batch_size, self.pipeline.batch_size)
        context = replace(self, pipeline=self.pipeline.replace(**changes), skipped=None, shard=None)
        context.collect_skipped()
        return context

    def beginning(self, count: int) -> "PipelineContext":
        """The first `count` processors, for all samples in the order of the source."""
        changes: dict[str, Any] = {"shuffle_buffer_size": 0, "bucket_boundaries": [], "bucket_batch_sizes": []}
        own_order = getattr(type(self.generator), "epoch_order", None)
        if self.random_access and own_order is not DataGenerator.epoch_order:
            changes["limit"] = None  # the source chooses what an epoch consists of, and that is limited then
        pipeline, collator = self.pipeline.replace(**changes), Collator({}, {}, {}, self.mode)
        return replace(self, pipeline=pipeline, collator=collator, batching=False, last_step=count, shard=None)

    def rest(self, count: int, source: Any) -> "PipelineContext":
        """All but the first `count` processors, on the samples that these made."""
        generated = any(step.generating for step in self.steps[:count])
        pipeline = self.pipeline.replace(limit=None) if generated else self.pipeline
        return replace(self, pipeline=pipeline, source=source, generator=None, random_access=None, first_step=count)

    def chosen(self) -> Sequence[int]:
        """The samples of a source with random access that are read: all, or those of the limit."""
        if self._chosen is None:
            self._chosen = limited_indices(self.generator, self.pipeline, self.mode, self.seed)
        return self._chosen

    def order(self, epoch: int) -> Sequence[int]:
        """The order of a source with random access in `epoch`; the last one is kept."""
        if self._order[0] != epoch:
            self._order = (epoch, self.new_order(epoch))
        return self._order[1]

    def new_order(self, epoch: int) -> Sequence[int]:
        """The same, safe to call from any thread."""
        return epoch_indices(self.generator, self.chosen(), self.pipeline, self.mode, self.seed, epoch)

    def random(self, epoch: int) -> SampleRandom:
        """The random numbers of `epoch`."""
        if self._random is None or self._random[0] != epoch:
            self._random = (epoch, SampleRandom(self.seed, epoch))
        return self._random[1]

    def load(self, indices: Sequence[int]) -> Iterator[Sample]:
        """Reads samples of a source with random access."""
        source: Any = self.generator
        read = source.__getitem__
        if self.clock is not None:
            read = self.clock.timed(type(source).__name__, read)
        for index in indices:
            index = int(index)
            try:
                sample = read(index)
            except Exception as error:
                failure = SampleError(f"{type(source).__name__} failed to read sample {index}: {cause(error)}")
                failure.__cause__ = error
                self.failed(failure)
                continue
            yield self.received(sample, index)

    def watch(self, maker: str) -> ReuseWatch | None:
        """Detects arrays that are reused for the next sample; None where each sample is a batch of its own."""
        return ReuseWatch(maker) if self.pipeline.batch_size > 1 else None

    def received(self, sample: Any, index: int) -> Sample:
        """A sample as the source gave it, checked and safe from changes by processors."""
        if not isinstance(sample, Sample):
            name, kind = type(self.generator).__name__, type(sample).__name__
            raise DataError(f"{name} must give a Sample(inputs, targets). Received: {kind} for sample {index}.")
        if sample.index is None:
            sample.index = index
        watch = self._watch
        if watch is not None:
            self._watch = watch.see(sample)
        return read_only(sample) if self.steps else sample

    def load_chunk(self, chunk: Chunk) -> tuple[list[Sample], Sequence[int]]:
        """Reads the samples of a chunk; returns them and the ordinals of those that could be read."""
        assert chunk.indices is not None
        if self.skipped is None:
            return list(self.load(chunk.indices)), chunk.ordinals
        samples: list[Sample] = []
        ordinals: list[int] = []
        for index, ordinal in zip(chunk.indices, chunk.ordinals, strict=True):
            for sample in self.load((index,)):
                samples.append(sample)
                ordinals.append(ordinal)
        return samples, ordinals

    def loaded(self, chunk: Chunk) -> Chunk:
        """A chunk with its samples, for a serial stage that comes first."""
        base = chunk.number * self.stages[0].chunk_size
        chunk.samples, kept = self.load_chunk(chunk)
        chunk.offsets = [ordinal - base for ordinal in kept]
        return chunk

    def is_batch(self, chunk: Chunk) -> bool:
        """Whether a chunk of the last stage becomes a batch: it is not empty and, where remainders are dropped, complete."""
        last = self.stages[-1]
        # in a pipeline of one stage, the feed has dropped it already
        short = len(self.stages) > 1 and last.parallel and len(chunk.samples) < last.chunk_size
        return bool(chunk.samples) and not (short and self.batching and self.pipeline.batch_drop_remainder)

    def meta_and_size(self, chunk: Chunk, arrays: Sequence[Any]) -> tuple[list[Any], int]:
        """The meta and the number of samples of a batch that was made of a chunk."""
        if not self.collator.whole_batches:
            return [sample.meta for sample in chunk.samples], len(chunk.samples)
        meta, size = chunk.samples[0].meta, len(arrays[0])
        return (list(meta) if isinstance(meta, list | tuple) else [meta] * size), size

    def collect_skipped(self) -> None:
        """In a worker: collects skipped samples until `take_skipped`, without logging them."""
        if self.skipped is not None:
            self.skipped.silent = True

    def take_skipped(self) -> list[str]:
        """The samples skipped since the last call (in a worker)."""
        if self.skipped is None or not self.skipped.silent or not self.skipped.identities:
            return []
        taken, self.skipped.identities = self.skipped.identities, []
        return taken

    def mapping(self, step: Step) -> MappingStep:
        """The mapping processor of a step, created."""
        made = MappingStep(step, step.params.create(self.data, self.mode))
        if self.clock is not None:
            made.apply = self.clock.timed(step.name, made.apply)
        return made

    def generating(self, step: Step) -> Any:
        """The generating processor of a step, created: itself, its generate(), and whether that takes random numbers."""
        processor = step.params.create(self.data, self.mode)
        timed = self.clock.timed_stream(step.name, processor.generate) if self.clock is not None else processor.generate
        return processor, timed, takes_rng(processor.generate)

    def failed(self, error: DataError) -> None:
        """A sample failed: skips it, or raises."""
        if self.skipped is None:
            raise error
        self.skipped.add(error)
