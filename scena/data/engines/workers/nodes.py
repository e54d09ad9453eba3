"""The nodes of the router, one for each stage: ordered inboxes of bounded capacity, and the events between them.

Nodes know the node after them and the `Dispatcher`, which gives tasks to workers; nothing of the router.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from scena import faults
from scena.data.engines.workers import messages
from scena.data.engines.workers.memory import SlotPool
from scena.data.engines.workers.pool import Member, WorkerPool


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
    source: messages.Stored | None
    """None if the samples are still to be read."""
    chunks: list[messages.ChunkRange]


@dataclass(slots=True)
class Failed:
    """Stands for a group that failed."""

    error: BaseException


TASKS_PER_WORKER = 2
"""One that runs and one that waits, so that no worker waits for the router."""
TARGET_SECONDS = 0.1
"""A task should take about this long: batches are grouped, so that messages cost little."""
TARGET_BYTES = 1 << 22
MEMORY_BYTES = 1 << 28
"""Batches are prepared ahead up to `prefetch`, or to this much memory if that is less."""


@dataclass(slots=True, eq=False)
class Entry:
    """A position in the order of results; `event` is None until the result is known."""

    node: "ParallelNode"
    group: Group | None
    event: Any = None


class Dispatcher:
    """Gives tasks to workers and takes their results; all nodes share it. `skip` receives the samples that workers skipped."""

    def __init__(self, pool: WorkerPool, skip: Callable[[list[str]], None]) -> None:
        self.generation = pool.next_generation()
        self.slots = pool.slots
        self.skip = skip
        self.most_chunks = pool.group
        """Chunks of a task, or of a message, at most."""
        self.chunks = 1
        """Chunks of a task now."""
        self._tasks: dict[Member, dict[int, Entry]] = {worker: {} for worker in pool.workers}
        self._count = 0

    @property
    def workers(self) -> int:
        return len(self._tasks)

    def free_worker(self) -> Member | None:
        """The worker with the fewest tasks, None if all have enough."""
        member = min(self._tasks, key=lambda worker: len(self._tasks[worker]))
        return member if len(self._tasks[member]) < TASKS_PER_WORKER else None

    def send(self, member: Member, entry: Entry, group: Group, stage_index: int) -> None:
        """Gives a task to a worker; its result arrives in `entry`."""
        self._count += 1
        self._tasks[member][self._count] = entry
        chunks = [messages.ChunkRange(one.number, one.first, one.stop, one.indices) for one in group.chunks]
        slot = self.slots.take()
        member.send(messages.Task(self.generation, self._count, stage_index, group.epoch, slot, group.source, chunks))

    def ended(self, member: Member, message: messages.Done | messages.TaskFailed) -> None:
        """Takes the result of a task; that of an earlier run is dropped."""
        self.slots.give(*message.freed)
        entry = self._tasks[member].pop(message.task, None) if message.generation == self.generation else None
        if isinstance(message, messages.TaskFailed):
            self.slots.give(message.slot)
            if entry is not None:
                entry.event = Failed(messages.raised(member.name, message.failure))
        elif entry is None:
            self.slots.give(message.result.slot)
        else:
            entry.node.finish(entry, message)
            if message.skipped:
                self.skip(message.skipped)

    def adapt(self, seconds: float, size: float) -> None:
        """Chooses how many chunks a task has, given what one takes."""
        wanted = min(TARGET_SECONDS / max(seconds, 1e-6), TARGET_BYTES / max(size, 1.0))
        self.chunks = int(max(1, min(self.most_chunks, wanted)))

    def describe(self) -> str:
        """Describes the running tasks for the stall warning."""
        texts = []
        for member, tasks in self._tasks.items():
            for entry in list(tasks.values())[:1]:
                if entry.group is not None and (chunks := entry.group.chunks):
                    last = chunks[-1].stop - 1
                    texts.append(f"The {member.name} is at samples {chunks[0].first} to {last} of its epoch.")
        return " ".join(texts)


class Queue:
    """Events in order, and how many chunks they stand for."""

    def __init__(self, slots: SlotPool) -> None:
        self._slots = slots
        self._inbox: deque[Any] = deque()

    def accept(self, event: Any) -> None:
        """Takes the next event of the stream."""
        self._inbox.append(event)

    def capacity(self) -> int:
        """Chunks that may still come."""
        raise NotImplementedError

    def measured(self, size: float) -> None:
        """Learns how many bytes a chunk has; only the last queue needs it."""

    def _waiting(self) -> int:
        return sum(len(event.chunks) for event in self._inbox if isinstance(event, Group))

    def drop(self, others: Iterable[Any] = ()) -> None:
        """Frees the slots of events that nobody will read."""
        for event in [*self._inbox, *others]:
            if isinstance(event, Group) and event.source is not None:
                self._slots.give(event.source.slot)
        self._inbox.clear()


class FinalQueue(Queue):
    """Batches that wait for the consumer, in order, and the ends of epochs between them."""

    def __init__(self, dispatcher: Dispatcher, prefetch: int) -> None:
        super().__init__(dispatcher.slots)
        self._least = dispatcher.workers + 1
        self._most = max(faults.smaller("prefetch", prefetch), self._least)
        self._count = 0
        self._size = 0.0

    def measured(self, size: float) -> None:
        self._size = max(size, 0.9 * self._size)

    def _limit(self) -> int:
        return max(min(self._most, int(MEMORY_BYTES / self._size)), self._least) if self._size else self._most

    def capacity(self) -> int:
        return self._limit() - self._count

    def below_low_water(self) -> bool:
        """Whether it is time to prepare more."""
        return 4 * self._count <= 3 * self._limit()

    def accept(self, event: Any) -> None:
        self._count += _cost(event)
        self._inbox.append(event)

    def take(self) -> Any:
        """The next event, or None."""
        if not self._inbox:
            return None
        event = self._inbox.popleft()
        self._count -= _cost(event)
        return event


def _cost(event: Any) -> int:
    return len(event.chunks) if isinstance(event, Group) else 1


class Node(Queue):
    """The queue of a stage, which passes its results to the one after it."""

    def __init__(self, dispatcher: Dispatcher, following: Queue, stage_index: int) -> None:
        super().__init__(dispatcher.slots)
        self._dispatcher = dispatcher
        self._following = following
        self._stage_index = stage_index

    def wants(self) -> bool:
        """Whether it has use for more input."""
        return len(self._inbox) < 2 and self.capacity() > 0

    def pump(self) -> None:
        """Does what can be done now."""
        raise NotImplementedError


class ParallelNode(Node):
    """Gives groups to the workers, and their results on in order."""

    def __init__(self, dispatcher: Dispatcher, following: Queue, stage_index: int) -> None:
        super().__init__(dispatcher, following, stage_index)
        self._last = isinstance(following, FinalQueue)
        self._order: deque[Entry] = deque()
        self._running = 0
        self._seconds = 0.0

    def capacity(self) -> int:
        waiting = self._waiting() + self._running
        if self._last:
            return self._following.capacity() - waiting
        return 2 * self._dispatcher.workers * max(1, self._dispatcher.chunks) + 2 - waiting

    def pump(self) -> None:
        """Hands out tasks while workers are free and there is capacity for results; passes on what is finished."""
        while self._order and self._order[0].event is not None:
            entry = self._order.popleft()
            if entry.group is not None:
                self._running -= len(entry.group.chunks)
            self._following.accept(entry.event)
        while self._inbox:
            if isinstance(self._inbox[0], Group):
                member = self._dispatcher.free_worker()
                full = not self._last and self._following.capacity() <= self._running
                if member is None or full:
                    return
                group = self._inbox.popleft()
                entry = Entry(self, group)
                self._order.append(entry)
                self._running += len(group.chunks)
                self._dispatcher.send(member, entry, group, self._stage_index)
            else:
                event = self._inbox.popleft()
                if self._order:
                    self._order.append(Entry(self, None, event))
                else:
                    self._following.accept(event)

    def finish(self, entry: Entry, done: messages.Done) -> None:
        """A task is done, and its results are in a slot; learns how long a chunk takes."""
        assert entry.group is not None
        chunks = [messages.ChunkRange(one.number, one.first, one.stop, None, one.after) for one in entry.group.chunks]
        entry.event = Group(entry.group.epoch, done.result, chunks)
        seconds, size = done.seconds / len(chunks), done.size / len(chunks)
        self._seconds = 0.5 * self._seconds + 0.5 * seconds if self._seconds else seconds
        if self._stage_index == 0:
            self._dispatcher.adapt(self._seconds, size)
        self._following.measured(size)

    def drop(self, others: Iterable[Any] = ()) -> None:
        super().drop([*others, *(entry.event for entry in self._order)])


class SerialNode(Node):
    """Passes everything to the one process of its stage, and on what comes back."""

    def __init__(
        self, dispatcher: Dispatcher, following: Queue, stage_index: int, member: Member, source: bool
    ) -> None:
        super().__init__(dispatcher, following, stage_index)
        self.member = member
        self._source = source
        self._unread = 0
        self._granted = 0
        self._epochs = 0
        self._given: deque[int] = deque()
        self._chunks_per_slot = 1.0
        self._begun: deque[Begin] = deque()

    def wants(self) -> bool:
        return self._epochs < 2 if self._source else super().wants()

    def capacity(self) -> int:
        return 2 * self._dispatcher.most_chunks + 2 - self._waiting() - self._unread

    def accept(self, event: Any) -> None:
        super().accept(event)
        self._epochs += isinstance(event, Begin)

    def pump(self) -> None:
        """Sends input and grants slots for output."""
        generation, most = self._dispatcher.generation, 2 * self._dispatcher.most_chunks
        while self._inbox and (self._unread <= most or not isinstance(self._inbox[0], Group)):
            event = self._inbox.popleft()
            if isinstance(event, Group):
                self._unread += len(event.chunks)
                self._given.append(len(event.chunks))
                self.member.send(messages.Input(generation, event.source, event.chunks))
            elif isinstance(event, Begin):
                self.member.send(messages.RunEpoch(generation, event.epoch, event.positions[self._stage_index]))
                self._begun.append(event)
            elif isinstance(event, End):
                self.member.send(messages.EndOfInput(generation))
            else:
                self._following.accept(event)
        capacity = self._following.capacity()
        while capacity > 0 and self._granted < 8 and self._granted * self._chunks_per_slot < capacity:
            self.member.send(messages.Grant(generation, self._slots.take()))
            self._granted += 1

    def handle(self, message: Any) -> None:
        """A message of its process; of an earlier run, only its slots are of interest."""
        current = message.generation == self._dispatcher.generation
        match message:
            case messages.Output() if current:
                count = len(message.chunks)
                self._granted -= 1
                self._chunks_per_slot = max(float(count), 0.9 * self._chunks_per_slot)
                if message.skipped:
                    self._dispatcher.skip(message.skipped)
                if count:  # none, if the first one failed
                    self._following.measured(message.size / count)
                self._following.accept(Group(message.epoch, message.result, message.chunks))
            case messages.Output():
                self._slots.give(message.result.slot)
            case messages.Freed():
                self._slots.give(*message.slots)
                if current:
                    self._unread -= self._given.popleft()
            case messages.EpochBegun() if current:
                self._following.accept(self._begun.popleft())
            case messages.EpochOver() if current:
                self._epochs -= 1
                self._dispatcher.skip(message.skipped)
                self._following.accept(End(message.epoch))
            case messages.StageFailed() if current:
                self._following.accept(Failed(messages.raised(self.member.name, message.failure)))
