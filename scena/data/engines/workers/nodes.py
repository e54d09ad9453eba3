"""The nodes of the router: ordered inboxes of bounded capacity, the events between them, and the queue for the consumer."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from scena.data.engines.workers.channel import raised
from scena.data.engines.workers.memory import SlotPool
from scena.data.engines.workers.messages import (
    ChunkRange,
    Done,
    EndOfInput,
    EpochBegun,
    EpochOver,
    Freed,
    Grant,
    Input,
    Output,
    RunEpoch,
    StageFailed,
    Stored,
    Task,
)

if TYPE_CHECKING:
    from scena.data.engines.workers.pool import Member
    from scena.data.engines.workers.router import Router


MEMORY_BYTES = 1 << 28
"""Batches are prepared ahead up to `prefetch`, or to this much memory if that is less."""


class FinalQueue:
    """Batches that wait for the consumer, in order, and the ends of epochs between them."""

    def __init__(self, router: "Router") -> None:
        self._router = router
        self._ready: deque[Any] = deque()
        self._count = 0
        self._size = 0.0

    def measured(self, size: float) -> None:
        """Learns how large a batch is."""
        self._size = max(size, 0.9 * self._size)

    def _limit(self) -> int:
        limit = self._router.limit
        if self._size:
            limit = max(min(limit, int(MEMORY_BYTES / self._size)), len(self._router.pool.workers) + 1)
        return limit

    def capacity(self) -> int:
        """Batches that may still be prepared."""
        return self._limit() - self._count

    def below_low_water(self) -> bool:
        """Whether it is time to prepare more."""
        return 4 * self._count <= 3 * self._limit()

    def accept(self, event: Any) -> None:
        """Takes what the last node gives."""
        self._count += self._cost(event)
        self._ready.append(event)

    def take(self) -> Any:
        """The next event, or None."""
        if not self._ready:
            return None
        event = self._ready.popleft()
        self._count -= self._cost(event)
        return event

    def _cost(self, event: Any) -> int:
        return len(event.chunks) if isinstance(event, Group) else 1

    def drop(self) -> None:
        """Gives back slots that nobody will read."""
        for event in self._ready:
            give_back(self._router.pool.slots, event)
        self._ready.clear()


@dataclass(slots=True)
class Begin:
    """An epoch begins."""

    epoch: int
    positions: list[Any]
    """Where each stage starts."""
    resumed: bool
    """Whether batches of this epoch were handed out before."""


@dataclass(slots=True)
class End:
    """An epoch is over."""

    epoch: int


@dataclass(slots=True)
class Group:
    """Consecutive chunks: to be read by index, or in one slot."""

    epoch: int
    source: Stored | None
    """None if the samples are still to be read."""
    chunks: list[ChunkRange]


@dataclass(slots=True)
class Failed:
    """In the place of a group: what went wrong there."""

    error: BaseException


def give_back(slots: SlotPool, event: Any) -> None:
    """Frees the slot of an event that nobody will read."""
    if isinstance(event, Group) and event.source is not None:
        slots.give(event.source.slot)


TASKS_PER_WORKER = 2
"""One that runs and one that waits, so that no worker waits for the router."""
TARGET_SECONDS = 0.1
"""A task should take about this long: batches are grouped, so that messages cost little."""
TARGET_BYTES = 1 << 22


class Following(Protocol):
    """What a node hands its results to."""

    def accept(self, event: Any) -> None:
        """Takes the next event of the stream."""

    def capacity(self) -> int:
        """Chunks that it has room for."""
        ...


@dataclass(slots=True, eq=False)
class Entry:
    """A place in the order of results."""

    node: "ParallelNode"
    group: Group | None
    event: Any = None

    def finish(self, done: Done) -> None:
        """The task is done; its results are in a slot."""
        assert self.group is not None
        chunks = [ChunkRange(one.number, one.first, one.stop, None, one.after) for one in self.group.chunks]
        self.event = Group(self.group.epoch, done.result, chunks)
        self.node.measured(done.seconds / len(chunks), done.size / len(chunks))
        if done.skipped:
            self.node.router.skip(done.skipped)

    def fail(self, error: BaseException) -> None:
        """The task failed."""
        self.event = Failed(error)


class ParallelNode:
    """Gives groups to the workers, and their results on in order."""

    def __init__(self, router: "Router", stage_index: int) -> None:
        self.router = router
        self.stage_index = stage_index
        self.following: Following
        self.inbox: deque[Any] = deque()
        self._order: deque[Entry] = deque()
        self._running = 0
        self._next = 0
        self._inner = stage_index < len(router.context.stages) - 1
        self._seconds = 0.0

    def wants(self) -> bool:
        """Whether it has use for more input."""
        return len(self.inbox) < 2 and self.capacity() > 0

    def capacity(self) -> int:
        """Chunks that may still come."""
        waiting = sum(len(event.chunks) for event in self.inbox if isinstance(event, Group))
        if self._inner:
            return 2 * len(self.router.pool.workers) * max(1, self.router.group) + 2 - waiting - self._running
        return self.following.capacity() - waiting - self._running

    def accept(self, event: Any) -> None:
        """Takes the next event of the stream."""
        self.inbox.append(event)

    def pump(self) -> None:
        """Hands out tasks while workers are free and there is room for results; passes on what is finished."""
        while self._order and self._order[0].event is not None:
            entry = self._order.popleft()
            if entry.group is not None:
                self._running -= len(entry.group.chunks)
            self.following.accept(entry.event)
        while self.inbox:
            if isinstance(self.inbox[0], Group):
                given = self.router.given
                member = min(given, key=lambda worker: len(given[worker]))
                full = self._inner and self.following.capacity() <= self._running
                if len(given[member]) >= TASKS_PER_WORKER or full:
                    return
                self._send(member, self.inbox.popleft())
            else:
                event = self.inbox.popleft()
                if self._order:
                    self._order.append(Entry(self, None, event))
                else:
                    self.following.accept(event)

    def _send(self, member: "Member", group: Group) -> None:
        router = self.router
        router.tasks += 1
        number = router.tasks
        entry = Entry(self, group)
        self._order.append(entry)
        self._running += len(group.chunks)
        router.given[member][number] = entry
        chunks = [ChunkRange(one.number, one.first, one.stop, one.indices) for one in group.chunks]
        slot = router.pool.slots.take()
        member.send(Task(router.generation, number, self.stage_index, group.epoch, slot, group.source, chunks))

    def measured(self, seconds: float, size: float) -> None:
        """Learns how long a chunk takes; groups light ones."""
        self._seconds = 0.5 * self._seconds + 0.5 * seconds if self._seconds else seconds
        if self.stage_index == 0:
            wanted = min(TARGET_SECONDS / max(self._seconds, 1e-6), TARGET_BYTES / max(size, 1.0))
            self.router.group = int(max(1, min(self.router.pool.group, wanted)))
        if not self._inner:
            self.router.final.measured(size)

    def drop(self) -> None:
        """Gives back slots that nobody will read."""
        for event in [*self.inbox, *(entry.event for entry in self._order)]:
            give_back(self.router.pool.slots, event)


class SerialNode:
    """Passes everything to the one process of its stage, and on what comes back."""

    def __init__(self, router: "Router", stage_index: int, member: "Member") -> None:
        self.router = router
        self.stage_index = stage_index
        self.member = member
        self.following: Following
        self.inbox: deque[Any] = deque()
        self._source = router.context.stages[stage_index].source
        self._unread = 0
        self._granted = 0
        self._epochs = 0
        self._given: deque[int] = deque()
        self._chunks_per_slot = 1.0
        self._begun: deque[Begin] = deque()

    def wants(self) -> bool:
        """Whether it has use for more input."""
        return self._epochs < 2 if self._source else len(self.inbox) < 2 and self.capacity() > 0

    def capacity(self) -> int:
        """Chunks that may still come."""
        waiting = sum(len(event.chunks) for event in self.inbox if isinstance(event, Group))
        return 2 * self.router.pool.group + 2 - waiting - self._unread

    def accept(self, event: Any) -> None:
        """Takes the next event of the stream."""
        self.inbox.append(event)
        if isinstance(event, Begin):
            self._epochs += 1

    def pump(self) -> None:
        """Sends input and grants slots for output."""
        generation = self.router.generation
        while self.inbox and (self._unread <= 2 * self.router.pool.group or not isinstance(self.inbox[0], Group)):
            event = self.inbox.popleft()
            if isinstance(event, Group):
                self._unread += len(event.chunks)
                self._given.append(len(event.chunks))
                self.member.send(Input(generation, event.source, event.chunks))
            elif isinstance(event, Begin):
                self.member.send(RunEpoch(generation, event.epoch, event.positions[self.stage_index]))
                self._begun.append(event)
            elif isinstance(event, End):
                self.member.send(EndOfInput(generation))
            else:
                self.following.accept(event)
        capacity = self.following.capacity()
        while capacity > 0 and self._granted < 8 and self._granted * self._chunks_per_slot < capacity:
            self.member.send(Grant(generation, self.router.pool.slots.take()))
            self._granted += 1

    def handle(self, message: Any, current: bool) -> None:
        """A message of its process; one that is not current belongs to a run that was given up."""
        slots = self.router.pool.slots
        match message:
            case Output() if current:
                count = len(message.chunks)
                self._granted -= 1
                self._chunks_per_slot = max(float(count), 0.9 * self._chunks_per_slot)
                if message.skipped:
                    self.router.skip(message.skipped)
                if self.stage_index == len(self.router.context.stages) - 1:
                    self.router.final.measured(message.size / count)
                self.following.accept(Group(message.epoch, message.result, message.chunks))
            case Output():
                slots.give(message.result.slot)
            case Freed():
                for slot in message.slots:
                    slots.give(slot)
                if current:
                    self._unread -= self._given.popleft()
            case EpochBegun() if current:
                self.following.accept(self._begun.popleft())
            case EpochOver() if current:
                self._epochs -= 1
                self.router.skip(message.skipped)
                self.following.accept(End(message.epoch))
            case StageFailed() if current:
                self.following.accept(Failed(raised(self.member.name, message.failure)))

    def drop(self) -> None:
        """Gives back slots that nobody will read."""
        for event in self.inbox:
            give_back(self.router.pool.slots, event)
