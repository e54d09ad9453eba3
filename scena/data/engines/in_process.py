"""What an engine is, and the one that runs the stages in this process, so that a debugger stops inside a processor.

All engines give the same batches in the same order. `--train.engine NAME` looks one up: Scena's own, or the entry point
`Engine.NAME` of an installed package. It is called with the `PipelineContext`.
"""

from collections.abc import Generator, Iterator
from typing import Any, Protocol

from scena.data.sample import Batch, Cursor, Sample
from scena.data.stages.collate import split
from scena.data.stages.context import PipelineContext
from scena.data.stages.feed import Whole, feed_start, index_chunks, starts
from scena.data.stages.running import ParallelStage, StreamStage
from scena.data.stages.stages import Chunk
from scena.errors import EmptyDataError


class Engine(Protocol):
    """Runs the stages of one pipeline. It is kept from stream to stream, with its processes if it has any."""

    def batches(self, cursor: Cursor, repeat: bool) -> Generator[Batch, None, None]:
        """The batches from `cursor` on; of one epoch only unless `repeat`."""

    def close(self) -> None:
        """Ends what the engine keeps between streams."""


class InProcessEngine(Engine):
    """Yields batches from a cursor on, epoch after epoch."""

    def __init__(self, context: PipelineContext) -> None:
        self.context = context
        self._parallel: dict[int, ParallelStage] = {}

    def batches(self, cursor: Cursor, repeat: bool) -> Generator[Batch, None, None]:
        context = self.context
        keys = context.collator.keys()
        for chunk, epoch in self._chunks(cursor, repeat):
            arrays = context.collator.collate(chunk.samples)
            after = cursor_after(epoch, chunk.number, chunk.ordinals[-1] + 1, chunk.after)
            batch = Batch(*split(keys, arrays), *context.meta_and_size(chunk, arrays), after)
            yield batch if context.shard is None else context.shard.mark(batch, chunk.after)

    def close(self) -> None:
        pass

    def groups(self, repeat: bool = False) -> Iterator[list[Sample]]:
        """The samples of each batch, from the start on."""
        return (chunk.samples for chunk, _ in self._chunks(Cursor(), repeat))

    def samples(self, repeat: bool = False) -> Iterator[Sample]:
        """The samples one by one, as they are right before batching."""
        return (sample for group in self.groups(repeat) for sample in group)

    def _chunks(self, cursor: Cursor, repeat: bool) -> Iterator[tuple[Chunk, int]]:
        """The chunks that become batches, and their epochs."""
        while True:
            count = 0
            stages = self.context.stages
            for chunk in self._open(len(stages) - 1, cursor, starts(stages, cursor.state)):
                if self.context.is_batch(chunk):
                    count += 1
                    yield chunk, cursor.epoch
            if not count and not cursor.batch and self.context.batching:
                raise empty(self.context)
            if not repeat:
                return
            cursor = Cursor(cursor.epoch + 1)

    def _open(self, stage_index: int, cursor: Cursor, positions: list[Any]) -> Iterator[Chunk]:
        context, stage = self.context, self.context.stages[stage_index]
        chunks: Iterator[Chunk] | None = None
        if stage_index:
            chunks = self._open(stage_index - 1, cursor, positions)
        elif not stage.source:
            chunks = index_chunks(context, cursor.epoch, cursor, feed_start(context.stages, positions))
            if not stage.parallel:
                chunks = map(context.loaded, chunks)
        if not stage.parallel:
            yield from StreamStage(context, stage_index, cursor.epoch).run(chunks, positions[stage_index])
            return
        assert chunks is not None
        if stage_index not in self._parallel:
            self._parallel[stage_index] = ParallelStage(context, stage)
        for chunk in chunks:
            yield self._parallel[stage_index].run(chunk, cursor.epoch)


def cursor_after(epoch: int, number: int, last: int, after: Any) -> Cursor:
    """The position after batch `number` of an epoch; `last` is the position after its last sample, `after` that of its stage."""
    if isinstance(after, Whole):
        return Cursor(epoch, number + 1, after.stop)
    return Cursor(epoch, number + 1, last, after)


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
