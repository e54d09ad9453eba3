"""Starts in this process, measures, and continues in worker processes if that pays.

That is possible because batches do not depend on where they are made, and a cursor restarts a pipeline at any batch.
"""

import logging
import os
import time
from collections.abc import Generator

from scena.data.batch import Batch, Cursor
from scena.data.engines.base import Engine
from scena.data.engines.in_process import InProcessEngine
from scena.data.engines.workers.engine import ParallelEngine
from scena.data.engines.workers.notebook import NotImportableError
from scena.data.stages.context import PipelineContext

logger = logging.getLogger("scena.data")

SPENT_SECONDS = 0.5
"""Less processing time than this never starts a process: single predictions, short evaluations."""
SHARE = 0.1
"""The share of the time that making batches must take: if the model is the bottleneck, processes do not help."""
BATCH_SECONDS = 0.001
"""The least time a batch must take: handing one over costs about 0.05 ms."""
MAX_PROCESSES = 8


def usable_cores() -> int:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def python_engine(context: PipelineContext) -> Engine:
    """The engine `python`: in this process, in workers, or what turns out to be better, as `num_processes` says."""
    processes = context.pipeline.num_processes
    if processes == 0:
        return InProcessEngine(context)
    return AutomaticEngine(context) if processes is None else ParallelEngine(context, processes)


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
            after = time.perf_counter()
            spent += after - before
            count += 1
            yield batch
            elapsed = time.perf_counter() - started
            worth = spent > SPENT_SECONDS and spent > SHARE * elapsed and spent > BATCH_SECONDS * count
            if worth and self._parallel is None and not self._impossible:
                self._start(spent / elapsed)
        batches.close()
        yield from self._parallel.batches(cursor, repeat)

    def _start(self, share: float) -> None:
        processes = min(MAX_PROCESSES, usable_cores())
        try:
            self._parallel = ParallelEngine(self.context, processes)
        except NotImportableError as error:
            self._impossible = True
            logger.info("The input pipeline stays in this process: %s", error)
        else:
            logger.info(
                "Making %s batches takes %.0f %% of the time: continuing with %d worker processes (num_processes).",
                self.context.mode.value, 100 * share, processes,
            )  # fmt: skip

    def close(self) -> None:
        """Ends the worker processes, if there are any."""
        if self._parallel is not None:
            self._parallel.close()
            self._parallel = None
