"""A worker process: started as a fresh interpreter, it never runs the user's main script.

It imports what its parameters need, and nothing of TensorFlow unless a user's module does. `TaskServer` runs chunks of parallel
stages; `StreamServer` runs one serial stage, which sees every chunk of the stream in order.
"""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from scena import faults
from scena.data.engines.workers import messages
from scena.data.engines.workers.config import restored_context
from scena.data.engines.workers.memory import Returns, SharedMemory, SlotWriter, open_slot, read_chunk, unpack_indices
from scena.data.stages.context import PipelineContext
from scena.data.stages.running import ParallelStage, StreamStage
from scena.data.stages.stages import Chunk

FLUSH_SECONDS = 0.002
FLUSH_BYTES = 1 << 20


def main(*arguments: str) -> None:
    """Runs until the parent closes the channel, or is gone; the arguments are three file descriptors and the parent's id."""
    channel_descriptor, life_descriptor, memory_descriptor, parent = map(int, arguments)
    faults.interrupt_calls()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it closes the channel
    threading.Thread(target=_end_with_parent, args=(life_descriptor,), daemon=True).start()
    channel = messages.Channel(socket.socket(fileno=channel_descriptor))
    try:
        config = channel.receive()
    except EOFError:
        return
    assert isinstance(config, messages.Configuration)
    if config.die_with_thread:
        _die_with_parent(parent)
    server: TaskServer | StreamServer | None = None
    answer: messages.Ready | messages.Broken
    try:
        context = restored_context(config.context)
        memory = SharedMemory(memory_descriptor)
        if config.stage_index is None:
            server = TaskServer(channel, memory, context)
        else:
            server = StreamServer(channel, memory, context, config.stage_index, config.group)
        answer = messages.Ready([name for name in ("tensorflow", "keras", "torch", "jax") if name in sys.modules])
    except Exception as error:
        answer = messages.Broken(messages.describe_failure(error))
    with contextlib.suppress(OSError):  # the parent closed its end while we wrote
        channel.send(answer)
        if server is not None:
            server.run()


def _end_with_parent(descriptor: int) -> None:
    """Nothing is ever written to this pipe: reading it ends when the parent does, however it ends."""
    os.read(descriptor, 1)
    os._exit(1)


def _die_with_parent(parent: int) -> None:
    """Lets the kernel kill us with the thread that started us (Linux); only asked for if that is the main thread."""
    import ctypes

    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)


def _chunks(returns: Returns, memory: SharedMemory, message: messages.Task | messages.Input) -> Iterator[Chunk]:
    """The chunks of a message: with their samples, if these are in a slot."""
    view, rows = open_slot(returns, memory, message.source) if message.source is not None else (None, [])
    for given, row in zip_longest(message.chunks, rows):
        ordinals, indices = range(given.first, given.stop), unpack_indices(given.indices)
        chunk = Chunk(given.number, ordinals, indices=indices, after=given.after)
        if view is not None:
            chunk.offsets, chunk.samples = read_chunk(view, row)
        yield chunk


class TaskServer:
    """Takes tasks from its channel, in order, until the channel ends."""

    def __init__(self, channel: messages.Channel, memory: SharedMemory, context: PipelineContext) -> None:
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
            assert isinstance(message, messages.Task)
            reply = self._run(message)
            # only now: the arrays of the task are gone, unless a processor kept them
            reply.freed = self._returns.take()
            self._channel.send(reply)

    def _run(self, task: messages.Task) -> messages.Done | messages.TaskFailed:
        start = time.perf_counter()
        writer = SlotWriter(self._memory, task.slot)
        try:
            stored = writer.close(self._results(writer, task))
        except Exception as error:
            return messages.TaskFailed(task.generation, task.number, task.slot, messages.describe_failure(error))
        seconds = time.perf_counter() - start
        return messages.Done(task.generation, task.number, stored, seconds, writer.size, self._context.take_skipped())

    def _results(self, writer: SlotWriter, task: messages.Task) -> list[Any]:
        index = task.stage_index
        if index not in self._stages:
            self._stages[index] = ParallelStage(self._context, self._context.stages[index])
        stage = self._stages[index]
        chunks = _chunks(self._returns, self._memory, task)
        return [writer.write(self._context, stage.stage, stage.run(chunk, task.epoch)) for chunk in chunks]


class _Reset(BaseException):
    """The parent starts again from another position. A BaseException: `except Exception` in a processor must not swallow it."""


class _Closed(BaseException):
    """The parent closed the channel."""


class StreamServer:
    """Runs epoch after epoch of one serial stage, in a process or thread, as fast as it is granted slots for its output."""

    def __init__(self, channel: messages.Channel, memory: SharedMemory, context: PipelineContext, stage_index: int,
                 group: int) -> None:  # fmt: skip
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
        self._started = 0.0
        self._epoch = 0
        self._start_slot()

    def _start_slot(self) -> None:
        self._writer: SlotWriter | None = None
        self._results: list[Any] = []
        self._chunks: list[messages.ChunkRange] = []

    def run(self) -> None:
        """Serves until the parent closes the channel."""
        try:
            while True:
                try:
                    self._serve()
                except _Reset:
                    continue
                except Exception as error:
                    self._inbox.clear()
                    self._send(messages.StageFailed(self._generation, messages.describe_failure(error)))
        except _Closed:
            return
        finally:
            self._channel.close()

    def _serve(self) -> None:
        message = self._next()
        if isinstance(message, messages.RunEpoch):
            self._epoch = message.epoch
            self._send(messages.EpochBegun(self._generation, self._epoch))
            stream = StreamStage(self._context, self._stage_index, self._epoch)
            for chunk in stream.run(None if self._stage.source else self._input(), message.position):
                self._emit(chunk)
            self._flush()
            self._send(messages.EpochOver(self._generation, self._epoch, self._context.take_skipped()))

    def _send(self, message: messages.Message) -> None:
        try:
            self._channel.send(message)
        except OSError:
            raise _Closed from None

    def _input(self) -> Iterator[Chunk]:
        while isinstance(message := self._next(), messages.Input):
            for chunk in _chunks(self._returns, self._memory, message):
                yield self._context.loaded(chunk) if message.source is None else chunk
                chunk.samples = []
            self._send(messages.Freed(message.generation, self._returns.take()))

    def _emit(self, chunk: Chunk) -> None:
        if self._writer is None:
            while not self._slots:
                self._wait()
            self._writer = SlotWriter(self._memory, self._slots.popleft())
            self._started = time.perf_counter()
        self._results.append(self._writer.write(self._context, self._stage, chunk))
        first, stop = chunk.ordinals[0], chunk.ordinals[-1] + 1
        self._chunks.append(messages.ChunkRange(chunk.number, first, stop, after=chunk.after))
        waited = time.perf_counter() - self._started
        if waited > FLUSH_SECONDS or self._writer.size > FLUSH_BYTES or len(self._chunks) >= self._group:
            self._flush()

    def _flush(self) -> None:
        if self._writer is not None:
            stored, skipped = self._writer.close(self._results), self._context.take_skipped()
            self._send(messages.Output(self._generation, self._epoch, stored, self._writer.size, self._chunks, skipped))
            self._start_slot()

    def _next(self) -> Any:
        while not self._inbox:
            self._wait()
        return self._inbox.popleft()

    def _wait(self) -> None:
        """Takes one message. Sends finished results first: the parent may be waiting for them."""
        if not self._channel.messages:
            self._flush()
        try:
            message = self._channel.receive()
        except (EOFError, OSError):
            raise _Closed from None
        if isinstance(message, messages.Reset):
            unused = [*self._slots] + ([self._writer.slot] if self._writer else [])
            self._send(messages.Unused(message.generation, unused))
            self._slots.clear()
            self._inbox.clear()
            self._start_slot()
            self._generation = message.generation
            raise _Reset
        if isinstance(message, messages.Grant):
            self._slots.append(message.slot)
        else:
            self._inbox.append(message)
