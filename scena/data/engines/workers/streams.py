"""The loop of a process (or thread) that runs one serial stage: it sees every chunk of the stream, in order."""

import time
from collections import deque
from collections.abc import Iterator
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
from scena.data.engines.workers.messages import (
    ChunkRange,
    EpochBegun,
    EpochOver,
    Freed,
    Grant,
    Input,
    Message,
    Output,
    Reset,
    RunEpoch,
    StageFailed,
    Stored,
    Unused,
)
from scena.data.stages.context import PipelineContext
from scena.data.stages.stages import Chunk
from scena.data.stages.stream_stage import StreamStage

FLUSH_SECONDS = 0.002
FLUSH_BYTES = 1 << 20


class _Reset(BaseException):
    """The parent starts again from another position. A BaseException: `except Exception` in a processor must not swallow it."""


class _Closed(BaseException):
    """The parent closed the channel."""


class StreamServer:
    """Runs epoch after epoch of one serial stage, as fast as it is granted slots for its output."""

    def __init__(
        self, channel: Channel, memory: SharedMemory, context: PipelineContext, stage_index: int, group: int
    ) -> None:
        self._channel = channel
        self._memory = memory
        self._context = context
        self._stage_index = stage_index
        self._stage = context.stages[stage_index]
        self._group = group
        self._generation = -1
        self._slots: deque[int] = deque()
        self._returns = Returns()
        self._inbox: deque[Any] = deque()
        self._writer: SlotWriter | None = None
        self._results: list[Any] = []
        self._chunks: list[ChunkRange] = []
        self._started = 0.0
        self._epoch = 0

    def run(self) -> None:
        """Serves until the parent closes the channel."""
        try:
            self._serve()
        finally:
            self._channel.close()

    def _serve(self) -> None:
        while True:
            try:
                while not self._inbox:
                    self._wait()
                message = self._inbox.popleft()
                if isinstance(message, RunEpoch):
                    self._run_epoch(message)
            except _Reset:
                continue
            except _Closed:
                return
            except Exception as error:
                self._inbox.clear()
                try:
                    self._send(StageFailed(self._generation, describe_failure(error)))
                except _Closed:
                    return

    def _send(self, message: Message) -> None:
        try:
            self._channel.send(message)
        except OSError:
            raise _Closed from None

    def _run_epoch(self, message: RunEpoch) -> None:
        epoch = self._epoch = message.epoch
        self._send(EpochBegun(self._generation, epoch))
        stream = StreamStage(self._context, self._stage_index, epoch)
        for chunk in stream.run(None if self._stage.source else self._input(), message.position):
            self._emit(chunk)
        self._flush()
        self._send(EpochOver(self._generation, epoch, self._context.take_skipped()))

    def _input(self) -> Iterator[Chunk]:
        while True:
            while not self._inbox:
                self._wait()
            message = self._inbox.popleft()
            if not isinstance(message, Input):
                return
            source = message.source
            stored: Any = None
            view: Any = None
            if source is not None:
                view = lease(self._returns, self._memory, source)
                stored = read_header(view, source.start, source.length)
            for row, chosen in enumerate(message.chunks):
                ordinals, indices = range(chosen.first, chosen.stop), unpack_indices(chosen.indices)
                chunk = Chunk(chosen.number, ordinals, indices=indices, after=chosen.after)
                if stored is not None:
                    chunk.offsets, chunk.samples = read_chunk(view, stored[row])
                else:
                    self._context.load_into(chunk)
                yield chunk
            chunk.samples = []
            view = None
            self._send(Freed(message.generation, self._returns.take()))

    def _emit(self, chunk: Chunk) -> None:
        if self._writer is None:
            while not self._slots:
                self._wait()
            self._writer = SlotWriter(self._memory, self._slots.popleft())
            self._started = time.perf_counter()
        if self._stage.batches and self._context.batching:
            self._results.append(write_batch(self._context, self._writer, chunk))
        else:
            self._results.append(write_chunk(self._writer, chunk))
        made = ChunkRange(chunk.number, chunk.ordinals[0], chunk.ordinals[-1] + 1, after=chunk.after)
        self._chunks.append(made)
        waited = time.perf_counter() - self._started
        if waited > FLUSH_SECONDS or self._writer.size > FLUSH_BYTES or len(self._chunks) >= self._group:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            return
        result = Stored(self._writer.slot, *self._writer.header(self._results))
        skipped = self._context.take_skipped()
        self._send(Output(self._generation, self._epoch, result, self._writer.size, self._chunks, skipped))
        self._writer, self._results, self._chunks = None, [], []

    def _wait(self) -> None:
        """Takes one message. Sends finished results first: the parent may be waiting for them."""
        if not self._channel.messages:
            self._flush()
        try:
            message = self._channel.receive()
        except (EOFError, OSError):
            raise _Closed from None
        if isinstance(message, Reset):
            unused = [*self._slots] + ([self._writer.slot] if self._writer else [])
            self._send(Unused(message.generation, unused))
            self._slots.clear()
            self._inbox.clear()
            self._writer, self._results, self._chunks = None, [], []
            self._generation = message.generation
            raise _Reset
        if isinstance(message, Grant):
            self._slots.append(message.slot)
        else:
            self._inbox.append(message)
