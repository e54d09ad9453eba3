"""The messages between the parent and its worker processes. Samples and batches travel in shared memory, never in a message."""

from collections.abc import Sequence
from typing import Any

import msgspec


class Message(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Base of all messages; on the wire, a list that starts with the name of its class."""


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
    """Where the results of some chunks lie in shared memory."""

    slot: int
    start: int
    """The offset of the header in the slot."""
    length: int
    """The length of the header."""


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


class Task(Message):
    """To a worker: run these chunks and put the results into a slot."""

    generation: int
    number: int
    stage_index: int
    epoch: int
    slot: int
    source: Stored | None
    chunks: list[ChunkRange]


class Reset(Message):
    """To a serial stage: forget everything and start from another position."""

    generation: int


class RunEpoch(Message):
    """To a serial stage: the next epoch starts, at this position of the stage."""

    generation: int
    epoch: int
    position: Any


class Input(Message):
    """To a serial stage: the next chunks."""

    generation: int
    source: Stored | None
    chunks: list[ChunkRange]


class EndOfInput(Message):
    """To a serial stage: the epoch has no more chunks."""

    generation: int


class Grant(Message):
    """To a serial stage: a slot for its output."""

    generation: int
    slot: int


# ---- to the parent


class Ready(Message):
    """The process is up."""

    heavy: Sequence[str]
    """Packages it had to import although a data worker should not."""


class Broken(Message):
    """The process could not be set up."""

    failure: Failure


class Done(Message):
    """A task is done."""

    generation: int
    task: int
    result: Stored
    seconds: float
    size: int
    skipped: list[str]
    freed: list[int] = []
    """Slots that were read."""


class TaskFailed(Message):
    """A task raised an exception."""

    generation: int
    task: int
    slot: int
    failure: Failure
    freed: list[int] = []


class EpochBegun(Message):
    """A serial stage began an epoch."""

    generation: int
    epoch: int


class Output(Message):
    """A serial stage made these chunks."""

    generation: int
    epoch: int
    result: Stored
    size: int
    chunks: list[ChunkRange]
    skipped: list[str]


class Freed(Message):
    """A serial stage has read an input; these slots can be used again."""

    generation: int
    slots: list[int]


class Unused(Message):
    """Slots that a serial stage had not used when it was reset."""

    generation: int
    slots: list[int]


class EpochOver(Message):
    """A serial stage is at the end of an epoch."""

    generation: int
    epoch: int
    skipped: list[str]


class StageFailed(Message):
    """A serial stage raised an exception."""

    generation: int
    failure: Failure


FromParent = Configuration | Task | Reset | RunEpoch | Input | EndOfInput | Grant
FromWorker = Ready | Broken | Done | TaskFailed | EpochBegun | Output | Freed | Unused | EpochOver | StageFailed
