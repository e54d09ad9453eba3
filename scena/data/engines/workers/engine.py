"""The engine that runs the stages in worker processes. Its batches are the same as those of the in-process engine."""

import logging
from collections.abc import Generator, Iterator
from typing import Any

from scena.data.batch import Batch, Cursor
from scena.data.engines.base import Engine
from scena.data.engines.in_process import cursor_after, empty
from scena.data.engines.workers.codec import read_batch, read_chunk, read_header
from scena.data.engines.workers.memory import Bytes, lease
from scena.data.engines.workers.nodes import Begin, End, Group
from scena.data.engines.workers.pool import WorkerPool
from scena.data.engines.workers.router import Router
from scena.data.sample import Sample
from scena.data.stages.context import PipelineContext
from scena.errors import WorkerError

logger = logging.getLogger("scena.data")

RESTARTS_WITHOUT_PROGRESS = 3


class ParallelEngine(Engine):
    """Yields batches from a cursor on, made by `processes` workers; keeps the workers for the next time."""

    def __init__(self, context: PipelineContext, processes: int) -> None:
        self.context = context
        self.processes = processes
        self.pool = WorkerPool(context, processes)

    def batches(self, cursor: Cursor, repeat: bool) -> Generator[Batch, None, None]:
        failures = 0
        if self.pool.closed:  # a worker died in an earlier stream
            self.pool = WorkerPool(self.context, self.processes)
        while True:
            try:
                for batch in self._batches(cursor, repeat):
                    cursor, failures = batch.cursor, 0
                    yield batch
                return
            except WorkerError as error:
                died = self.pool.closed and self.context.pipeline.on_worker_death == "restart"
                failures += 1
                if not died or failures > RESTARTS_WITHOUT_PROGRESS:
                    raise
                logger.warning("%s Starting again after %s.", error, cursor)
                self.close()
                self.pool = WorkerPool(self.context, self.processes)

    def _batches(self, cursor: Cursor, repeat: bool) -> Iterator[Batch]:
        keys = self.context.collator.keys()
        for group, view, rows in self._groups(cursor, repeat):
            for chunk, stored in zip(group.chunks, rows, strict=True):
                if stored is not None:
                    after = cursor_after(group.epoch, chunk.number, chunk.stop, chunk.after)
                    batch = read_batch(keys, view, stored, after)
                    yield batch if self.context.shard is None else self.context.shard.mark(batch, chunk.after)

    def samples(self) -> Iterator[Sample]:
        """The samples of one epoch, for a pipeline that does not end in batches."""
        for _, view, rows in self._groups(Cursor(), False):
            for stored in rows:
                yield from read_chunk(view, stored)[1]

    def _groups(self, cursor: Cursor, repeat: bool) -> Iterator[tuple[Group, Bytes, list[Any]]]:
        pool = self.pool
        router = Router(pool, cursor, repeat)
        count = 0
        try:
            while True:
                event = router.take()
                if isinstance(event, Begin):
                    count = int(event.resumed)
                elif isinstance(event, End):
                    if not count and self.context.batching:
                        raise empty(self.context)
                    if not repeat:
                        return
                else:
                    view = lease(pool.slots, pool.memory, event.source)
                    rows = read_header(view, event.source.start, event.source.length)
                    count += sum(stored is not None for stored in rows)
                    yield event, view, rows
                    del view
        finally:
            router.close()

    def close(self) -> None:
        """Ends the worker processes."""
        self.pool.close()
