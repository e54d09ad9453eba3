"""Engines with worker processes: `ParallelEngine` always has them, `AutomaticEngine` starts them if that pays.

Their batches are the same as those of the in-process engine, and a cursor restarts a pipeline at any batch. So an engine may begin
in this process, measure, and continue in workers.
"""

import logging
import os
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

from scena import faults
from scena.data.engines.in_process import Engine, InProcessEngine, cursor_after, empty
from scena.data.engines.workers.config import NotImportableError
from scena.data.engines.workers.memory import Bytes, open_slot, read_batch, read_chunk
from scena.data.engines.workers.nodes import Begin, End, Group
from scena.data.engines.workers.pool import WorkerPool
from scena.data.engines.workers.router import Router
from scena.data.generator import is_one_shot
from scena.data.sample import Batch, Cursor, Sample
from scena.data.stages.context import PipelineContext
from scena.errors import WorkerError

logger = logging.getLogger("scena.data")

RESTARTS_WITHOUT_PROGRESS = 3
SPENT_SECONDS = 0.5
"""Less processing time than this never starts a process: single predictions, short evaluations."""
SHARE = 0.1
"""The share of the time that making batches must take: if the model is the bottleneck, processes do not help."""
BATCH_SECONDS = 0.001
"""The least time a batch must take: handing one over costs about 0.05 ms."""
MAX_PROCESSES = 8


class WorkerRestart(Exception):  # noqa: N818
    """Asked for by SCENA_FAULT."""


def python_engine(context: PipelineContext) -> Engine:
    """The engine `python`: in this process, in workers, or whichever is faster, as `num_processes` says."""
    processes = context.pipeline.num_processes
    if processes == 0:
        return InProcessEngine(context)
    return AutomaticEngine(context) if processes is None else ParallelEngine(context, processes)


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ParallelEngine(Engine):
    """Yields batches from a cursor on, made by `processes` workers; keeps the workers for the next time."""

    def __init__(self, context: PipelineContext, processes: int) -> None:
        self.context = context
        self.processes = processes
        self.pool = WorkerPool(context, processes)

    def batches(self, cursor: Cursor, repeat: bool) -> Generator[Batch, None, None]:
        failures = 0
        if self.pool.closed:  # a worker died in an earlier stream
            self._restart()
        while True:
            try:
                for batch in self._batches(cursor, repeat):
                    cursor, failures = batch.cursor, 0
                    yield batch
                    if faults.happens("worker", 16) and not is_one_shot(self.context.generator):
                        raise WorkerRestart
                return
            except WorkerError as error:
                died = self.pool.closed and self.context.pipeline.on_worker_death == "restart"
                failures += 1
                if not died or failures > RESTARTS_WITHOUT_PROGRESS:
                    raise
                logger.warning("%s Starting again after %s.", error, cursor)
                self._restart()
            except WorkerRestart:
                self._restart()

    def _restart(self) -> None:
        self.close()
        self.pool = WorkerPool(self.context, self.processes)

    def _batches(self, cursor: Cursor, repeat: bool) -> Iterator[Batch]:
        keys, shard = self.context.collator.keys(), self.context.shard
        for group, view, rows in self._groups(cursor, repeat):
            for chunk, stored in zip(group.chunks, rows, strict=True):
                if stored is not None:
                    after = cursor_after(group.epoch, chunk.number, chunk.stop, chunk.after)
                    batch = read_batch(keys, view, stored, after)
                    yield batch if shard is None else shard.mark(batch, chunk.after)

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
                    view, rows = open_slot(pool.slots, pool.memory, event.source)
                    count += sum(stored is not None for stored in rows)
                    yield event, view, rows
                    del view
        finally:
            router.close()

    def close(self) -> None:
        self.pool.close()


class AutomaticEngine(Engine):
    """Yields batches, made here or in worker processes."""

    def __init__(self, context: PipelineContext) -> None:
        self.context = context
        self._parallel: ParallelEngine | None = None
        pointless = context.main_source and not any(stage.steps for stage in context.stages)
        self._impossible = pointless or not hasattr(os, "memfd_create")

    def batches(self, cursor: Cursor, repeat: bool) -> Generator[Batch, None, None]:
        started, spent, count = time.perf_counter(), 0.0, 0
        batches = InProcessEngine(self.context).batches(cursor, repeat)
        while self._parallel is None or not self._parallel.pool.ready():
            before = time.perf_counter()
            batch = next(batches, None)
            if batch is None:
                return
            cursor = batch.cursor
            spent += time.perf_counter() - before
            count += 1
            yield batch
            elapsed = time.perf_counter() - started
            worth = spent > SPENT_SECONDS and spent > SHARE * elapsed and spent > BATCH_SECONDS * count
            if worth and self._parallel is None and not self._impossible:
                self._start(spent / elapsed)
        batches.close()
        yield from self._parallel.batches(cursor, repeat)

    def _start(self, share: float) -> None:
        self._parallel = workers_per_core(self.context)
        self._impossible = self._parallel is None
        if self._parallel is not None:
            logger.info(
                "Making %s batches takes %.0f %% of the time: continuing with %d worker processes (num_processes).",
                self.context.mode.value, 100 * share, self._parallel.processes,
            )  # fmt: skip

    def close(self) -> None:
        if self._parallel is not None:
            self._parallel.close()
            self._parallel = None


def workers_per_core(context: PipelineContext) -> ParallelEngine | None:
    """An engine with a worker per core; None if workers cannot import what the pipeline needs."""
    try:
        return ParallelEngine(context, min(MAX_PROCESSES, usable_cores()))
    except NotImportableError as error:
        logger.info("The input pipeline stays in this process: %s", error)
        return None


def samples_of(engine: ParallelEngine | InProcessEngine) -> Iterator[Sample]:
    """The samples of one epoch; closes the engine at the end."""
    with closing(engine):
        yield from engine.samples()
