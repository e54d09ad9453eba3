"""The engine that runs the stages in this process, so that a debugger stops inside a processor."""

from collections.abc import Generator, Iterator
from typing import Any

from scena.data.batch import Batch, Cursor
from scena.data.engines.base import Engine
from scena.data.stages.collate import split
from scena.data.stages.context import PipelineContext
from scena.data.stages.feed import Whole, feed_start, index_chunks, starts
from scena.data.stages.parallel_stage import ParallelStage
from scena.data.stages.stages import Chunk
from scena.data.stages.stream_stage import StreamStage
from scena.errors import EmptyDataError


class InProcessEngine(Engine):
    """Yields batches from a cursor on, epoch after epoch."""

    def __init__(self, context: PipelineContext) -> None:
        self.context = context
        self._parallel: dict[int, ParallelStage] = {}

    def batches(self, cursor: Cursor, repeat: bool) -> Generator[Batch, None, None]:
        keys = self.context.collator.keys()
        for chunk, epoch in self.chunks(cursor, repeat):
            inputs, targets = split(keys, self.context.collator.collate(chunk.samples))
            after = cursor_after(epoch, chunk.number, chunk.ordinals[-1] + 1, chunk.after)
            batch = Batch(inputs, targets, *meta_and_size(self.context, chunk, inputs or targets), after)
            yield batch if self.context.shard is None else self.context.shard.mark(batch, chunk.after)

    def close(self) -> None:
        pass

    def chunks(self, cursor: Cursor, repeat: bool) -> Iterator[tuple[Chunk, int]]:
        """The samples of each batch, and its epoch."""
        while True:
            count = 0
            for chunk in self._epoch(cursor):
                count += 1
                yield chunk, cursor.epoch
            if not count and not cursor.batch and self.context.batching:
                raise empty(self.context)
            if not repeat:
                return
            cursor = Cursor(cursor.epoch + 1)

    def _epoch(self, cursor: Cursor) -> Iterator[Chunk]:
        stages = self.context.stages
        positions = starts(stages, cursor.state)
        last = stages[-1]
        for chunk in self._open(len(stages) - 1, cursor, positions):
            # in a pipeline of one stage, the feed has dropped it already
            short = last.parallel and len(stages) > 1 and self.context.batching and len(chunk.samples) < last.chunk_size
            if chunk.samples and not (short and self.context.pipeline.batch_drop_remainder):
                yield chunk

    def _open(self, stage_index: int, cursor: Cursor, positions: list[Any]) -> Iterator[Chunk]:
        context, stage = self.context, self.context.stages[stage_index]
        if stage_index:
            chunks = self._open(stage_index - 1, cursor, positions)
        elif not stage.source:
            chunks = index_chunks(context, cursor.epoch, cursor, feed_start(context.stages, positions))
        if not stage.parallel:
            if stage_index == 0 and not stage.source:
                chunks = self._loaded(chunks)
            stream = StreamStage(context, stage_index, cursor.epoch)
            yield from stream.run(None if stage.source else chunks, positions[stage_index])
            return
        if stage_index not in self._parallel:
            self._parallel[stage_index] = ParallelStage(context, stage)
        for chunk in chunks:
            yield self._parallel[stage_index].run(chunk, cursor.epoch)

    def _loaded(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            self.context.load_into(chunk)
            yield chunk


def cursor_after(epoch: int, number: int, last: int, after: Any) -> Cursor:
    """The position after a batch.

    Args:
        epoch: its epoch.
        number: its number in the epoch.
        last: the position after its last sample.
        after: the position of the stage that made it, or the whole batch that it is a part of.
    """
    if isinstance(after, Whole):
        return Cursor(epoch, number + 1, after.stop)
    return Cursor(epoch, number + 1, last, after)


def meta_and_size(context: PipelineContext, chunk: Chunk, arrays: dict[str, Any]) -> tuple[list[Any], int]:
    """The meta and the number of samples of a batch."""
    if context.collator.whole_batches:
        meta = chunk.samples[0].meta
        size = len(next(iter(arrays.values())))
        return (list(meta) if isinstance(meta, list | tuple) else [meta] * size), size
    return [sample.meta for sample in chunk.samples], len(chunk.samples)


def empty(context: PipelineContext) -> EmptyDataError:
    """The error of a data set without a batch."""
    source = type(context.generator).__name__
    params = context.generator.params if context.generator is not None else None
    hint = ""
    if context.pipeline.batch_drop_remainder:
        hint = f" batch_drop_remainder is set: a source with fewer than {context.pipeline.batch_size} samples gives no batch."
    if context.skipped is not None and context.skipped.identities:
        hint += f" {len(context.skipped.identities)} samples were skipped because of errors."
    return EmptyDataError(
        f"The {context.mode.value} data is empty: {source} ({params}) gave no "
        f"{'batch' if hint else 'sample'}. Check its paths, lists and filters.{hint}"
    )
