"""What a process needs to do its part of a pipeline: source, processors, specs. Built alike here and in a worker."""

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from scena.data.errors import DataError, SampleError
from scena.data.generator import DataGenerator, as_generator, has_random_access, is_shared
from scena.data.params import DataBaseParams, DataPipelineParams, DataProcessorPipelineParams, PipelineMode
from scena.data.processor import Step, steps_of, takes_rng
from scena.data.sample import Sample
from scena.data.stages.collate import Collator
from scena.data.stages.feed import Shard, epoch_indices, limited_indices
from scena.data.stages.mapping import MappingStep, ReuseWatch, Skipped, read_only, reason, user_line
from scena.data.stages.rng import SampleRandom
from scena.data.stages.stages import Chunk, Stage, plan_stages
from scena.params.declare import Params

if TYPE_CHECKING:
    from scena.data.benchmark import Clock


class PipelineContext:
    """The source, the collator and the settings of one pipeline in one process."""

    def __init__(
        self,
        *,
        mode: PipelineMode,
        pipeline: DataPipelineParams,
        data: DataBaseParams,
        processors: DataProcessorPipelineParams,
        collator: Collator | None,
        seed: int,
        source: Any,
        generator: DataGenerator[Any] | None = None,
        random_access: bool | None = None,
        first_step: int = 0,
        last_step: int | None = None,
    ) -> None:
        self.mode = mode
        self.pipeline = pipeline
        self.data = data
        self.processors = processors
        self.seed = seed
        self.source = source
        if generator is None and source is not None:  # not by its truth: that asks for a length, which it may not know
            generator = as_generator(source, mode)
        self.generator = generator
        self.main_source = (
            self.generator is None
            or self.generator.main_process
            or not (isinstance(source, Params) or is_shared(source))
        )
        """Whether the source stays in the training process (in a worker: it is not here)."""
        if random_access is None:
            random_access = self.generator is not None and has_random_access(self.generator)
        self.random_access = random_access
        self.batching = collator is not None
        """Whether the pipeline ends in batches; else in samples."""
        self.collator = collator or Collator({}, {}, {}, mode)
        self.skipped = Skipped(pipeline.max_skipped) if pipeline.on_error == "skip" else None
        self.first_step = first_step
        self.last_step = last_step
        self.steps: list[Step] = steps_of(processors, mode)[first_step:last_step]
        """The processors that it runs: all that apply in this mode, unless some were done before."""
        self.stages: list[Stage] = plan_stages(
            self.steps,
            random_access=self.random_access and not self.main_source,
            main_source=self.main_source,
            batch_size=1
            if self.collator.whole_batches or not (self.batching or pipeline.num_processes)
            else pipeline.batch_size,
            bucketing=bool(pipeline.bucket_boundaries) and self.batching,
            skipping=self.skipped is not None,
        )
        self.shard: Shard | None = None
        """The part of each batch that is made, if several processes share it; only where `can_shard`."""
        self.clock: Clock | None = None
        """Measures what each part takes, if set before the processors are created."""
        self._chosen: Sequence[int] | None = None
        self._watch = self.watch(type(self.generator).__name__)
        self._order: tuple[int, Sequence[int]] = (-1, ())
        self._random: tuple[int, SampleRandom] | None = None

    @property
    def can_shard(self) -> bool:
        """Whether the samples of a batch are known by their index, so that a part of it can be made alone."""
        only = self.stages[0]
        return len(self.stages) == 1 and only.parallel and only.batches and not self.collator.whole_batches

    def copy(self) -> "PipelineContext":
        """The same pipeline again, with the same source."""
        return copy.copy(self)

    def small(self, batch_size: int | None) -> "PipelineContext":
        """The same pipeline without buckets and with smaller batches, unless each batch must have its full size."""
        changes: dict[str, Any] = {"bucket_boundaries": [], "bucket_batch_sizes": [], "bucket_by": None}
        if batch_size is not None and not self.pipeline.batch_drop_remainder:
            changes["batch_size"] = min(batch_size, self.pipeline.batch_size)
        context = PipelineContext(
            mode=self.mode,
            pipeline=self.pipeline.replace(**changes),
            data=self.data,
            processors=self.processors,
            collator=self.collator,
            seed=self.seed,
            source=self.source,
            generator=self.generator,
            first_step=self.first_step,
            last_step=self.last_step,
        )
        context.collect_skipped()
        return context

    def beginning(self, count: int) -> "PipelineContext":
        """The first `count` processors, for all samples in the order of the source."""
        changes: dict[str, Any] = {"shuffle_buffer_size": 0, "bucket_boundaries": [], "bucket_batch_sizes": []}
        own_order = getattr(type(self.generator), "epoch_order", None)
        if self.random_access and own_order is not DataGenerator.epoch_order:
            changes["limit"] = None  # the source chooses what an epoch consists of, and that is limited then
        context = PipelineContext(
            mode=self.mode,
            pipeline=self.pipeline.replace(**changes),
            data=self.data,
            processors=self.processors,
            collator=None,
            seed=self.seed,
            source=self.source,
            generator=self.generator,
            last_step=count,
        )
        context.skipped = self.skipped
        return context

    def rest(self, count: int, source: Any) -> "PipelineContext":
        """All but the first `count` processors, on samples that these have made."""
        generated = any(step.generating for step in self.steps[:count])
        context = PipelineContext(
            mode=self.mode,
            pipeline=self.pipeline.replace(limit=None) if generated else self.pipeline,
            data=self.data,
            processors=self.processors,
            collator=self.collator,
            seed=self.seed,
            source=source,
            first_step=count,
        )
        context.skipped = self.skipped
        return context

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
        """The same for any thread: nothing is kept."""
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
                failure = SampleError(
                    f"{type(source).__name__} failed to read sample {index}: {reason(error)}{user_line(error)}"
                )
                failure.__cause__ = error
                self.failed(failure)
                continue
            yield self.received(sample, index)

    def watch(self, maker: str) -> ReuseWatch | None:
        """Looks for arrays that are used again; None where each sample is a batch, and done with before the next one is made."""
        return ReuseWatch(maker) if self.pipeline.batch_size > 1 else None

    def received(self, sample: Any, index: int) -> Sample:
        """A sample as the source gave it, checked and safe from changes by processors."""
        if not isinstance(sample, Sample):
            raise DataError(
                f"{type(self.generator).__name__} must give a Sample(inputs, targets). "
                f"Received: {type(sample).__name__} for sample {index}."
            )
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

    def load_into(self, chunk: Chunk) -> None:
        """Reads the samples of a chunk, for a serial stage that comes first."""
        base = chunk.number * self.stages[0].chunk_size
        chunk.samples, kept = self.load_chunk(chunk)
        chunk.offsets = [ordinal - base for ordinal in kept]

    def collect_skipped(self) -> None:
        """For a worker: samples that are left out are collected until `take_skipped`."""
        if self.skipped is not None:
            self.skipped.silent = True

    def take_skipped(self) -> list[str]:
        """What was left out since the last call (in a worker)."""
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
        random = takes_rng(processor.generate)
        generate = processor.generate
        if self.clock is not None:
            generate = self.clock.timed_stream(step.name, generate)
        return processor, generate, random

    def failed(self, error: DataError) -> None:
        """A sample failed: skips it, or raises."""
        if self.skipped is None:
            raise error
        self.skipped.add(error)
