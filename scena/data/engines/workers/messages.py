"""Messages between the parent and its worker processes, the channel that carries them, and how failures are reported.

Samples and batches travel in shared memory, never in a message.
"""

import logging
import signal
import socket
import struct
import traceback
from collections.abc import Sequence
from typing import Any

import msgspec

from scena import faults
from scena.errors import DataError, WorkerError, causes
from scena.user_code import user_lines

logger = logging.getLogger("scena.data")


class Message(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Base of all messages; on the wire, a list that starts with the name of its class."""


class RunMessage(Message):
    """A message about one run of the pool. Its number tells messages of earlier runs apart."""

    generation: int


class Failure(msgspec.Struct, array_like=True, gc=False):
    """An exception of another process."""

    message: str
    lines: str
    """The lines of the user's code it passed through."""
    trace: str


class ChunkRange(msgspec.Struct, array_like=True):
    """Which samples a chunk consists of."""

    number: int
    """Its position in the stream of chunks."""
    first: int
    """The ordinal of its first sample."""
    stop: int
    """The ordinal after that of its last sample."""
    indices: bytes | None = None
    """Where to read the samples in the source (see `pack_indices`); None if they are in a slot already."""
    after: Any = None
    """The position of the stage that made it, right after it."""


class Stored(msgspec.Struct, array_like=True, gc=False):
    """Where the results of some chunks lie in shared memory: the slot, and offset and length of its header."""

    slot: int
    start: int
    length: int


# ---- from the parent


class Configuration(Message):
    """The first message to a process: how to build its part of the pipeline."""

    context: dict[str, Any]
    """The fields of the pipeline's context (see config.py)."""
    group: int
    """Chunks of a message at most."""
    die_with_thread: bool
    """Whether the process may ask the kernel to end with the thread that started it."""
    stage_index: int | None = None
    """The serial stage that it runs; None for a worker of parallel stages."""


class Task(RunMessage):
    """To a worker: run these chunks and put the results into a slot."""

    number: int
    stage_index: int
    epoch: int
    slot: int
    source: Stored | None
    chunks: list[ChunkRange]


class Reset(RunMessage):
    """To a serial stage: forget everything and start from another position."""


class RunEpoch(RunMessage):
    """To a serial stage: the next epoch starts, at this position of the stage."""

    epoch: int
    position: Any


class Input(RunMessage):
    """To a serial stage: the next chunks."""

    source: Stored | None
    chunks: list[ChunkRange]


class EndOfInput(RunMessage):
    """To a serial stage: the epoch has no more chunks."""


class Grant(RunMessage):
    """To a serial stage: a slot for its output."""

    slot: int


# ---- to the parent


class Ready(Message):
    """The process is up."""

    heavy: Sequence[str]
    """Packages it had to import although a data worker should not."""


class Broken(Message):
    """The process could not be set up."""

    failure: Failure


class Done(RunMessage):
    """A task is done."""

    task: int
    result: Stored
    seconds: float
    size: int
    skipped: list[str]
    freed: list[int] = []
    """Slots that were read."""


class TaskFailed(RunMessage):
    """A task raised an exception."""

    task: int
    slot: int
    failure: Failure
    freed: list[int] = []


class EpochBegun(RunMessage):
    """A serial stage began an epoch."""

    epoch: int


class Output(RunMessage):
    """A serial stage made these chunks."""

    epoch: int
    result: Stored
    size: int
    chunks: list[ChunkRange]
    skipped: list[str]


class Freed(RunMessage):
    """A serial stage has read an input; these slots can be used again."""

    slots: list[int]


class Unused(RunMessage):
    """Slots that a serial stage had not used when it was reset."""

    slots: list[int]


class EpochOver(RunMessage):
    """A serial stage is at the end of an epoch."""

    epoch: int
    skipped: list[str]


class StageFailed(RunMessage):
    """A serial stage raised an exception."""

    failure: Failure


FromParent = Configuration | Task | Reset | RunEpoch | Input | EndOfInput | Grant
FromWorker = Ready | Broken | Done | TaskFailed | EpochBegun | Output | Freed | Unused | EpochOver | StageFailed

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(FromParent | FromWorker).decode
_LENGTH = struct.Struct("<I")


class Channel:
    """One end of a socket pair. Each message has its length before it."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._buffer = bytearray(
            faults.smaller("message", 1 << 16)
        )  # kept: a new one for each message would be mapped and unmapped each time
        self._received = bytearray()
        self.messages: list[FromParent | FromWorker] = []

    @classmethod
    def pair(cls) -> tuple["Channel", "Channel"]:
        """Two connected ends."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, message: Message) -> None:
        """Sends a message; raises OSError if the other end is gone."""
        body = _encode(message)
        self.socket.sendall(_LENGTH.pack(len(body)) + body)

    def receive(self) -> FromParent | FromWorker:
        """The next message; waits for it. Raises EOFError if the other end is gone."""
        while not self.messages:
            if not self.fill():
                raise EOFError
        return self.messages.pop(0)

    def fill(self) -> bool:
        """Reads what is there (waits for something); False at the end."""
        try:
            count = self.socket.recv_into(self._buffer)
        except ConnectionResetError:
            return False
        received = self._received
        received += memoryview(self._buffer)[:count]
        start = 0
        while len(received) - start >= 4:
            (length,) = _LENGTH.unpack_from(received, start)
            if len(received) - start - 4 < length:
                break
            self.messages.append(_decode(memoryview(received)[start + 4 : start + 4 + length]))
            start += 4 + length
        if start:
            del received[:start]
        return count > 0

    def close(self) -> None:
        self.socket.close()


_LIMIT = 50_000


def describe_failure(error: BaseException) -> Failure:
    """An exception for the parent."""
    message = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))
    lines: list[str] = []
    for cause in causes(error):
        found = user_lines(cause.__traceback__)
        lines += [f"{line.file}:{line.number} in {line.function}: {line.text}" for line in found]
    return Failure(message[:_LIMIT], "\n".join(lines)[:_LIMIT], text[-_LIMIT:])


def raised(name: str, failure: Failure) -> WorkerError:
    """The error to raise in the parent: with the user's lines; the whole traceback where there are none, else in the log."""
    logger.debug("In %s:\n%s", name, failure.trace)
    if not failure.lines:
        return WorkerError(f"{failure.message}\n\nIn {name}:\n{failure.trace}")
    shown = "\n".join(f"  {line}" for line in failure.lines.splitlines())
    return WorkerError(f"{failure.message}\nIn {name} (SCENA_LOG_LEVEL=debug shows the whole traceback):\n{shown}")


def died(name: str, status: int | None) -> WorkerError:
    """The error for a worker that is gone."""
    if status is None:
        how = "closed its connection"
    elif status < 0:
        try:
            how = f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            how = f"was killed by signal {-status}"
        if status == -signal.SIGKILL:
            how += " (by hand, or because the machine ran out of memory: see `dmesg`)"
    else:
        how = f"ended with exit status {status}"
    return WorkerError(
        f"The {name} of the input pipeline {how}. Resume the run, use fewer processes if memory is short, or set "
        "on_worker_death=restart to restart it automatically."
    )
