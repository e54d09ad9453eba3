"""Runs the stages of a pipeline, in whichever process the engine chooses.

A parallel stage runs chunk by chunk. A serial one sees the whole stream in order, and knows its position after each chunk.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from scena.data.processor import Step
from scena.data.sample import Sample
from scena.data.stages.context import PipelineContext
from scena.data.stages.feed import stream_samples
from scena.data.stages.mapping import MappingStep, apply_steps, cause
from scena.data.stages.rng import SampleRandom, epoch_random, random_state, set_random_state
from scena.data.stages.stages import Chunk, Stage
from scena.errors import DataError, ScenaError

Address = tuple[int, int]
"""The number of a chunk, and the offset of a sample in it."""
Item = tuple[Sample, int, int]
"""A sample and the coordinates of its random numbers."""


class ParallelStage:
    """Chunks that are independent of each other: any process may run any of them."""

    def __init__(self, context: PipelineContext, stage: Stage) -> None:
        self.context = context
        self.stage = stage
        self._before: list[MappingStep] = []
        self._after: list[MappingStep] = []
        self._generating: tuple[Step, Any, bool] | None = None
        self._watch = context.watch(" or ".join(step.name for step in stage.steps))
        for step in stage.steps:
            if step.generating:
                _, generate, random = context.generating(step)
                self._generating = (step, generate, random)
            else:
                mapping = self._before if self._generating is None else self._after
                mapping.append(context.mapping(step))

    def run(self, chunk: Chunk, epoch: int) -> Chunk:
        """Processes one chunk: reads it if need be, applies the processors; keeps the addresses of the samples that remain."""
        random = self.context.random(epoch)
        if chunk.indices is not None:
            loaded, ordinals = self.context.load_chunk(chunk)
        else:
            loaded, ordinals = chunk.samples, chunk.ordinals
        base = chunk.number * self.stage.chunk_size
        steps, samples = self._before, loaded
        if self.context.skipped is None:
            if steps:
                apply = apply_steps if self._watch is None else self._watched
                samples = [apply(steps, s, random, i, 0) for s, i in zip(loaded, ordinals, strict=True)]
            kept: Sequence[int] = range(ordinals[0] - base, ordinals[-1] + 1 - base)
        else:
            samples, kept = self._apply_or_skip(loaded, ordinals, random, base)
        if self._generating is not None:
            samples = self._generate(samples, chunk.number, epoch)
            kept = range(len(samples))
        return Chunk(chunk.number, chunk.ordinals, samples, after=chunk.after, offsets=kept)

    def _watched(self, *arguments: Any) -> Sample:
        sample = apply_steps(*arguments)
        if self._watch is not None:
            self._watch = self._watch.see(sample)
        return sample

    def _apply_or_skip(
        self, loaded: list[Sample], ordinals: Sequence[int], random: SampleRandom, base: int
    ) -> tuple[list[Sample], list[int]]:
        samples: list[Sample] = []
        kept: list[int] = []
        for sample, ordinal in zip(loaded, ordinals, strict=True):
            try:
                samples.append(apply_steps(self._before, sample, random, ordinal, 0))
                kept.append(ordinal - base)
            except DataError as error:
                self.context.failed(error)
        return samples, kept

    def _generate(self, samples: list[Sample], number: int, epoch: int) -> list[Sample]:
        assert self._generating is not None
        step, generate, random = self._generating
        numbers = self.context.random(epoch)
        arguments = (numbers.at(number, 0, step.number),) if random else ()
        last: Sample | None = None

        def taken() -> Iterator[Sample]:
            nonlocal last
            for sample in samples:
                last = sample
                yield sample

        try:
            made = list(generate(taken(), *arguments))
        except DataError:
            raise
        except Exception as error:
            where = "the start" if last is None else last.identity()
            raise DataError(f"{step.name} failed at {where} of chunk {number}: {cause(error)}") from error
        result = []
        for part, sample in enumerate(made):
            try:
                result.append(apply_steps(self._after, sample, numbers, number, part + 1))
            except DataError as error:
                self.context.failed(error)
        return result


class GeneratingStep:
    """A generating processor that sees the whole stream; counts what it gave."""

    def __init__(self, context: PipelineContext, step: Step, epoch: int) -> None:
        self.step = step
        self.processor, self._generate, random = context.generating(step)
        self.given = 0
        self._last: Sample | None = None
        self.random = epoch_random(context.seed, epoch, step.number) if random else None

    def run(self, items: Iterator[Item]) -> Iterator[Item]:
        """The samples it makes."""
        arguments = (self.random,) if self.random is not None else ()
        made = iter(self._generate(self._taken(items), *arguments))
        while True:
            try:
                sample = next(made)
            except StopIteration:
                return
            except DataError:
                raise
            except Exception as error:
                where = "nothing" if self._last is None else self._last.identity()
                raise DataError(f"{self.step.name} failed at {where}: {cause(error)}") from error
            self.given += 1
            yield sample, self.given - 1, 0

    def _taken(self, items: Iterator[Item]) -> Iterator[Sample]:
        for sample, _, _ in items:
            self._last = sample
            yield sample

    def snapshot(self) -> Any:
        """What `restore` needs to continue from here."""
        return [self.given, self.processor.state(), None if self.random is None else random_state(self.random)]

    def restore(self, snapshot: Any) -> None:
        """Goes back to a snapshot."""
        self.given, state, random = snapshot
        self.processor.restore(state)
        if self.random is not None:
            set_random_state(self.random, random)


def _mapped(context: PipelineContext, steps: list[MappingStep], items: Iterable[Item], epoch: int) -> Iterator[Item]:
    random = context.random(epoch)
    watch = context.watch(" or ".join(step.name for step in steps))
    for sample, index, part in items:
        try:
            made = apply_steps(steps, sample, random, index, part)
        except DataError as error:
            context.failed(error)
            continue
        if watch is not None:
            watch = watch.see(made)
        yield made, index, part


def _source_items(context: PipelineContext, epoch: int, start: int) -> Iterator[Item]:
    """The samples of a stream from `start` on."""
    generator: Any = context.generator
    if context.random_access:  # the source stays in this process, but need not be read from its start
        order = context.order(epoch)
        for ordinal in range(start, len(order)):
            for sample in context.load((order[ordinal],)):
                yield sample, ordinal, 0
        return
    samples = stream_samples(generator, context.pipeline, context.mode, context.seed, epoch)
    if context.clock is not None:
        samples = context.clock.timed_iterator(type(generator).__name__, samples)
    ordinal = 0
    while True:
        try:
            sample = next(samples)
        except StopIteration:
            return
        except ScenaError:  # its message is complete, as that of a model that predicts samples for post-processing
            raise
        except Exception as error:
            name = type(generator).__name__
            raise DataError(f"{name} failed after {ordinal} samples: {cause(error)}") from error
        if ordinal >= start:
            yield context.received(sample, ordinal), ordinal, 0
        ordinal += 1


class Buckets:
    """Groups samples. Boundaries [10, 20]: bucket 0 holds lengths below 10, bucket 1 below 20, bucket 2 the rest."""

    def __init__(self, context: PipelineContext, batches: bool, chunk: int) -> None:
        params = context.pipeline
        self.boundaries = params.bucket_boundaries if batches and context.batching else []
        self.sizes = [chunk]
        if self.boundaries:
            self.sizes = params.bucket_batch_sizes or [params.batch_size] * (len(self.boundaries) + 1)
        self.drop_remainder = batches and params.batch_drop_remainder
        self.arriving: Address = (0, 0)
        """The address of the sample that is being read, set by the reader."""
        self._context = context
        self._checked = batches and context.batching and context.skipped is not None
        self._key = params.bucket_by
        self._waiting: list[list[tuple[Sample, Address]]] = [[] for _ in self.sizes]

    def cut(self, items: Iterable[Item]) -> Iterator[list[Sample]]:
        """Yields a group as soon as it is full, and the incomplete ones at the end."""
        collator, number = self._context.collator, 0
        for sample, _, _ in items:
            if self._checked and not self._fits(sample):
                continue
            if self.boundaries:
                number = bisect_right(self.boundaries, collator.length(sample, self._key))
            bucket = self._waiting[number]
            bucket.append((sample, self.arriving))
            if len(bucket) == self.sizes[number]:
                yield self._taken(number)
        for number, bucket in enumerate(self._waiting):
            if bucket and not self.drop_remainder:
                yield self._taken(number)

    def _taken(self, number: int) -> list[Sample]:
        bucket, self._waiting[number] = self._waiting[number], []
        return [sample for sample, _ in bucket]

    def _fits(self, sample: Sample) -> bool:
        """Whether a sample matches the specs; one that does not is skipped."""
        try:
            self._context.collator.check(sample)
        except DataError as error:
            self._context.failed(error)
            return False
        return True

    def pending(self) -> list[Address]:
        """The addresses of samples that were taken but not given yet."""
        return [address for bucket in self._waiting for _, address in bucket]


class StreamStage:
    """A serial stage of one epoch.

    Its position is a JSON value: `piece` and `out` count the chunks and samples it gave. If it can be restored exactly, `next` is the
    address of the next sample it takes, `pending` those that wait in buckets, `states` those of generating processors, `in` the
    position of the stage before it; otherwise it starts the epoch again and drops what it gave.
    """

    def __init__(self, context: PipelineContext, stage_index: int, epoch: int) -> None:
        stages = context.stages
        self.context = context
        self.stage: Stage = stages[stage_index]
        self.epoch = epoch
        upstream = stages[stage_index - 1] if stage_index else self.stage
        self._chunk = upstream.chunk_size if upstream.parallel or not stage_index else upstream.out_chunk_size
        self._pairs = stage_index > 0 and upstream.generating
        self.exact = self.stage.exact
        self._generating: list[GeneratingStep] = []
        self._next: Address = (0, 0)
        self._before: dict[int, Any] = {}
        self._buckets = Buckets(context, self.stage.batches, self.stage.out_chunk_size)

    def run(self, chunks: Iterable[Chunk] | None, position: Any) -> Iterator[Chunk]:
        """The chunks (or the samples of batches) it makes from `position` on; `chunks` is None if it starts with the source."""
        number, out = (position["piece"], position["out"]) if position else (0, 0)
        restored = position if self.exact else None
        dropped = 0 if self.exact else number
        if chunks is None:
            countable = not self.stage.generating and not self._buckets.boundaries and self.context.skipped is None
            items = _source_items(self.context, self.epoch, out if countable else 0)
            dropped = 0 if countable else number
        else:
            items = self._read(chunks, restored)
        given, count = (0, 0) if dropped else (number, out)
        for samples in self._buckets.cut(self._apply(items, restored)):
            first = count
            count += len(samples)
            given += 1
            if given > dropped:
                yield Chunk(given - 1, range(first, count), samples, after=self._position(given, count))

    def _apply(self, items: Iterator[Item], position: Any) -> Iterator[Item]:
        mapping: list[MappingStep] = []
        for step in self.stage.steps:
            if not step.generating:
                mapping.append(self.context.mapping(step))
                continue
            if mapping:
                items = _mapped(self.context, mapping, items, self.epoch)
                mapping = []
            generating = GeneratingStep(self.context, step, self.epoch)
            if position:
                generating.restore(position["states"][len(self._generating)])
            self._generating.append(generating)
            items = generating.run(items)
        return _mapped(self.context, mapping, items, self.epoch) if mapping else items

    def _read(self, chunks: Iterable[Chunk], position: Any) -> Iterator[Item]:
        start: Address = (0, 0)
        pending: set[Address] = set()
        if position:
            start = (position["next"][0], position["next"][1])
            pending = {(chunk, offset) for chunk, offset in position["pending"]}
            self._next = start
            self._before[min([start, *pending])[0]] = position["in"]
        for chunk in chunks:
            offsets = chunk.offsets if chunk.offsets is not None else range(len(chunk.samples))
            self._before[chunk.number + 1] = chunk.after
            last = len(chunk.samples) - 1
            for row, (sample, offset) in enumerate(zip(chunk.samples, offsets, strict=True)):
                address = (chunk.number, offset)
                if address < start and address not in pending:
                    continue
                self._next = max(start, (chunk.number + 1, 0) if row == last else (chunk.number, offset + 1))
                self._buckets.arriving = address
                if self._pairs:
                    yield sample, chunk.number, offset + 1
                else:
                    yield sample, chunk.number * self._chunk + offset, 0
            self._next = max(start, (chunk.number + 1, 0))
            oldest = self._oldest()
            self._before = {number: place for number, place in self._before.items() if number >= oldest}

    def _oldest(self) -> int:
        return min([self._next, *self._buckets.pending()])[0]

    def _position(self, given: int, count: int) -> Any:
        position: dict[str, Any] = {"piece": given, "out": count}
        if self.exact:
            position |= {
                "next": list(self._next),
                "pending": sorted(list(address) for address in self._buckets.pending()),
                "states": [generating.snapshot() for generating in self._generating],
                "in": self._before.get(self._oldest()),
            }
        return position
