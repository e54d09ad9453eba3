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
from scena.data.engines.workers.memory import Returns, SharedMemory, lease
from scena.data.engines.workers.messages import Done, Stored, Task, TaskFailed
from scena.data.stages.context import PipelineContext
from scena.data.stages.parallel_stage import ParallelStage
from scena.data.stages.stages import Chunk


class TaskServer:
    """Takes tasks from its channel, in order, until the channel ends."""

    def __init__(self, channel: Channel, memory: SharedMemory, context: PipelineContext) -> None:
        self._channel = channel
        self._memory = memory
        self._context = context
        self._returns = Returns()
        self._stages: dict[int, ParallelStage] = {}

    def run(self) -> None:
        """Serves until the parent closes the channel."""
        while True:
            try:
                message = self._channel.receive()
            except EOFError:
                return
            assert isinstance(message, Task)
            reply = self._run(message)
            reply.freed = (
                self._returns.take()
            )  # only now: the arrays of the task are gone, unless a processor kept them
            self._channel.send(reply)

    def _run(self, task: Task) -> Done | TaskFailed:
        start = time.perf_counter()
        writer = SlotWriter(self._memory, task.slot)
        try:
            results = self._results(writer, task)
            header = writer.header(results)
        except Exception as error:
            return TaskFailed(task.generation, task.number, task.slot, describe_failure(error))
        skipped = self._context.take_skipped()
        seconds = time.perf_counter() - start
        return Done(task.generation, task.number, Stored(task.slot, *header), seconds, writer.size, skipped)

    def _results(self, writer: SlotWriter, task: Task) -> list[Any]:
        index, source = task.stage_index, task.source
        if index not in self._stages:
            self._stages[index] = ParallelStage(self._context, self._context.stages[index])
        stage = self._stages[index]
        stored = None
        if source is not None:
            view = lease(self._returns, self._memory, source)
            stored = read_header(view, source.start, source.length)
        results = []
        for row, chosen in enumerate(task.chunks):
            chunk = Chunk(chosen.number, range(chosen.first, chosen.stop), indices=unpack_indices(chosen.indices))
            if stored is not None:
                chunk.offsets, chunk.samples = read_chunk(view, stored[row])
            made = stage.run(chunk, task.epoch)
            if stage.stage.batches and self._context.batching:
                results.append(write_batch(self._context, writer, made))
            else:
                results.append(write_chunk(writer, made))
        return results
