"""The loop of a worker that runs chunks of parallel stages."""

import time
from typing import Any

from scena.data.engines.workers.channel import Channel, describe_failure
from scena.data.engines.workers.codec import (
    SlotWriter,
    read_chunk,
    read_header,
    unpack_indices,
    write_batch,
    write_chunk,
)
from scena.data.engines.workers.memory import Lease, Returns, SharedMemory
from scena.data.stages.context import PipelineContext
from scena.data.stages.parallel_stage import ParallelStage
from scena.data.stages.stages import Chunk

_POOL = 16 * 1024
_ENOUGH = 128
"""Free places in one pool that are enough for what is alive between two samples."""
_MOST = 1 << 15
"""Objects that are held at most: about a megabyte, most of it in places that were lost anyway."""


class HoleFiller:
    """Holds unused numbers in the holes, so that the next ones come from a pool with many free places."""

    def __init__(self) -> None:
        self._held: list[float] = []
        self._tasks = 0

    def before_task(self) -> None:
        """Fills the holes before tasks 1, 2, 4, 8 and so on: the first ones still create what stays."""
        self._tasks += 1
        if self._tasks & (self._tasks - 1) == 0:
            self.fill()

    def fill(self) -> None:
        """Fills the holes that there are now."""
        while len(self._held) < _MOST:
            found = [stage_index + 0.5 for stage_index in range(_ENOUGH)]  # a float takes as much as an int
            pool = id(found[-1]) // _POOL
            elsewhere = [number for number in found if id(number) // _POOL != pool]
            if not elsewhere:
                return
            self._held += elsewhere


class TaskServer:
    """Takes tasks from its channel, in order, until the channel ends."""

    def __init__(self, channel: Channel, memory: SharedMemory, context: PipelineContext) -> None:
        self._channel = channel
        self._memory = memory
        self._context = context
        self._returns = Returns()
        self._holes = HoleFiller()
        self._stages: dict[int, ParallelStage] = {}

    def run(self) -> None:
        """Serves until the parent closes the channel."""
        while True:
            try:
                message = self._channel.receive()
            except EOFError:
                return
            self._holes.before_task()
            reply = self._task(*message)
            reply.append(
                self._returns.take()
            )  # only now: the arrays of the task are gone, unless a processor kept them
            self._channel.send(reply)

    def _task(
        self, generation: int, task: int, stage_index: int, epoch: int, slot: int, source: Any, chunks: Any
    ) -> list[Any]:
        start = time.perf_counter()
        writer = SlotWriter(self._memory, slot)
        try:
            results = self._results(writer, stage_index, epoch, source, chunks)
            header = writer.header(results)
        except Exception as error:
            return ["error", generation, task, slot, *describe_failure(error)]
        skipped = self._context.take_skipped()
        seconds = time.perf_counter() - start
        return ["done", generation, task, slot, *header, seconds, writer.size, skipped]

    def _results(self, writer: SlotWriter, stage_index: int, epoch: int, source: Any, chunks: Any) -> list[Any]:
        if stage_index not in self._stages:
            self._stages[stage_index] = ParallelStage(self._context, self._context.stages[stage_index])
        stage = self._stages[stage_index]
        stored = None
        if source is not None:
            view = Lease(self._returns, source[0], self._memory.view(source[0], source[1] + source[2])).bytes()
            stored = read_header(view, source[1], source[2])
        results = []
        for row, (number, first, last, indices) in enumerate(chunks):
            chunk = Chunk(number, range(first, last), indices=unpack_indices(indices))
            if stored is not None:
                chunk.offsets, chunk.samples = read_chunk(view, stored[row])
            made = stage.run(chunk, epoch)
            if stage.stage.batches and self._context.batching:
                results.append(write_batch(self._context, writer, made))
            else:
                results.append(write_chunk(writer, made))
        return results
