"""Runs a stage that sees the whole stream in order, and knows its position after each chunk."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from scena.data.sample import Sample
from scena.data.stages.context import PipelineContext
from scena.data.stages.mapping import MappingStep
from scena.data.stages.parallel_stage import Address, GeneratingStep, Item, map_items, source_items
from scena.data.stages.stages import Chunk, Stage
from scena.errors import DataError


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
        self._collator = context.collator
        self._key = params.bucket_by
        self._waiting: list[list[tuple[Sample, Address]]] = [[] for _ in self.sizes]

    def cut(self, items: Iterable[tuple[Sample, int, int]]) -> Iterator[list[Sample]]:
        """Yields a group as soon as it is full, and the incomplete ones at the end."""
        for sample, _, _ in items:
            if self._checked and not self._fits(sample):
                continue
            number = bisect_right(self.boundaries, self._collator.length(sample, self._key)) if self.boundaries else 0
            bucket = self._waiting[number]
            bucket.append((sample, self.arriving))
            if len(bucket) == self.sizes[number]:
                self._waiting[number] = []
                yield [waiting for waiting, _ in bucket]
        for number, bucket in enumerate(self._waiting):
            if bucket and not self.drop_remainder:
                self._waiting[number] = []
                yield [waiting for waiting, _ in bucket]

    def _fits(self, sample: Sample) -> bool:
        """Whether a sample matches the specs; one that does not is skipped."""
        try:
            self._collator.check(sample)
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
    address (chunk, offset) of the next sample it takes, `pending` those that wait in buckets, `states` those of
    generating processors, `in` the position of the stage before it; otherwise it starts the epoch again and drops
    what it gave.
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
            items = source_items(self.context, self.epoch, out if countable else 0)
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
                items = map_items(self.context, mapping, items, self.epoch)
                mapping = []
            generating = GeneratingStep(self.context, step, self.epoch)
            if position:
                generating.restore(position["states"][len(self._generating)])
            self._generating.append(generating)
            items = generating.run(items)
        return map_items(self.context, mapping, items, self.epoch) if mapping else items

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
            for known in [known for known in self._before if known < oldest]:
                del self._before[known]

    def _oldest(self) -> int:
        return min([self._next, *self._buckets.pending()])[0]

    def _position(self, given: int, count: int) -> Any:
        if not self.exact:
            return {"piece": given, "out": count}
        return {
            "piece": given,
            "out": count,
            "next": list(self._next),
            "pending": sorted(list(address) for address in self._buckets.pending()),
            "states": [generating.snapshot() for generating in self._generating],
            "in": self._before.get(self._oldest()),
        }
