"""Runs a parallel stage chunk by chunk, in whichever process the engine chooses; and the steps that serial stages share with it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from scena.data.processor import Step
from scena.data.sample import Sample
from scena.data.stages.context import PipelineContext
from scena.data.stages.feed import stream_samples
from scena.data.stages.mapping import MappingStep, apply_steps, reason, user_line
from scena.data.stages.rng import SampleRandom, random_state, set_random_state
from scena.data.stages.stages import Chunk, Stage
from scena.errors import DataError, ScenaError

Address = tuple[int, int]
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
            elif self._generating is None:
                self._before.append(context.mapping(step))
            else:
                self._after.append(context.mapping(step))

    def run(self, chunk: Chunk, epoch: int) -> Chunk:
        """Processes one chunk: reads it if need be, applies the processors; keeps the addresses of the samples that remain."""
        random = self.context.random(epoch)
        if chunk.indices is not None:
            loaded, ordinals = self.context.load_chunk(chunk)
        else:
            loaded, ordinals = chunk.samples, chunk.ordinals
        base = chunk.number * self.stage.chunk_size
        if self.context.skipped is None:
            steps = self._before
            apply = apply_steps if self._watch is None else self._watched
            samples = (
                [apply(steps, s, random, i, 0) for s, i in zip(loaded, ordinals, strict=True)] if steps else loaded
            )
            kept: Sequence[int] = range(ordinals[0] - base, ordinals[-1] + 1 - base)
        else:
            samples, kept = self._apply_or_skip(loaded, ordinals, random, base)
        result = Chunk(chunk.number, chunk.ordinals, samples, after=chunk.after)
        result.offsets = kept
        if self._generating is not None:
            result.samples = self._generate(samples, chunk.number, epoch)
            result.offsets = range(len(result.samples))
        return result

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
        taken: list[Sample] = []
        try:
            made = list(generate(_noted(samples, taken), *arguments))
        except DataError:
            raise
        except Exception as error:
            last = taken[-1].identity() if taken else "the start"
            raise DataError(
                f"{step.name} failed at {last} of chunk {number}: {reason(error)}{user_line(error)}"
            ) from error
        result = []
        for part, sample in enumerate(made):
            try:
                result.append(apply_steps(self._after, sample, numbers, number, part + 1))
            except DataError as error:
                self.context.failed(error)
        return result


def _noted(samples: list[Sample], taken: list[Sample]) -> Iterator[Sample]:
    for sample in samples:
        taken.append(sample)
        yield sample


class GeneratingStep:
    """A generating processor that sees the whole stream; counts what it took and what it gave."""

    def __init__(self, context: PipelineContext, step: Step, epoch: int) -> None:
        self.context = context
        self.step = step
        self.processor, self._generate, random = context.generating(step)
        self.given = 0
        self.last = "nothing"
        self.random = epoch_random(context, epoch, step) if random else None

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
                raise DataError(f"{self.step.name} failed at {self.last}: {reason(error)}{user_line(error)}") from error
            self.given += 1
            yield sample, self.given - 1, 0

    def _taken(self, items: Iterator[Item]) -> Iterator[Sample]:
        for sample, _, _ in items:
            self.last = sample.identity()
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


def epoch_random(context: PipelineContext, epoch: int, step: Step) -> Any:
    """A generator of its own for a processor that draws over a whole epoch."""
    return SampleRandom(context.seed, epoch).at(0, 0, step.number)


def map_items(context: PipelineContext, steps: list[MappingStep], items: Iterable[Item], epoch: int) -> Iterator[Item]:
    """Applies mapping processors to a stream."""
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


def source_items(context: PipelineContext, epoch: int, start: int) -> Iterator[Item]:
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
            raise DataError(
                f"{type(generator).__name__} failed after {ordinal} samples: {reason(error)}{user_line(error)}"
            ) from error
        if ordinal >= start:
            yield context.received(sample, ordinal), ordinal, 0
        ordinal += 1
