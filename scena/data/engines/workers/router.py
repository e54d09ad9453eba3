"""Moves chunks between the processes of a pool, in the parent: it hands over slots, never their contents.

Each stage is a node with an ordered inbox. A node of a parallel stage gives tasks to whichever worker is free and puts
the results back into order; a node of a serial stage passes everything to its one process. What leaves the last node
are batches for the consumer. All of it runs in one background thread.
"""

import logging
import math
import os
import selectors
import threading
from collections.abc import Iterator
from typing import Any

from scena.data.engines.workers import nodes
from scena.data.engines.workers.memory import pack_indices
from scena.data.engines.workers.messages import Broken, ChunkRange, Done, Ready, Reset, TaskFailed, Unused, died, raised
from scena.data.engines.workers.pool import Member, WorkerPool
from scena.data.sample import Cursor
from scena.data.stages.feed import feed_start, index_chunks, starts
from scena.errors import DataError

PATIENCE_SECONDS = 30
"""After waiting this long for a batch, the log describes what the workers are doing."""

logger = logging.getLogger("scena.data")


class Router:
    """One run of a pool, from a cursor on."""

    def __init__(self, pool: WorkerPool, cursor: Cursor, repeat: bool) -> None:
        self._pool = pool
        self._context = pool.context
        self._dispatcher = nodes.Dispatcher(pool, self._skip)
        self._events = self._feed(cursor, repeat)
        self._exhausted = False
        self._final = nodes.FinalQueue(self._dispatcher, self._context.pipeline.prefetch)
        self._nodes = self._linked()
        self._lock = threading.Condition()
        self._failure: BaseException | None = None
        self._closed = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        for member in pool.members:
            self._selector.register(member.channel, selectors.EVENT_READ, member)
        for member in pool.streams.values():
            member.send(Reset(self._dispatcher.generation))
        self._thread = threading.Thread(target=self._run, name="scena-router", daemon=True)
        self._thread.start()

    def _linked(self) -> list[nodes.Node]:
        """The nodes; the last one is made first, since each knows the one after it."""
        linked: list[nodes.Node] = []
        for index, stage in reversed(list(enumerate(self._context.stages))):
            place = (self._dispatcher, linked[0] if linked else self._final, index)
            if stage.parallel:
                linked.insert(0, nodes.ParallelNode(*place))
            else:
                linked.insert(0, nodes.SerialNode(*place, self._pool.streams[index], stage.source))
        return linked

    # ---- the consumer's side

    def take(self) -> Any:
        """The next Begin, Group of batches, or End; waits for it. Raises what went wrong."""
        with self._lock:
            while True:
                if self._failure is not None:
                    raise self._failure
                event = self._final.take()
                if event is not None:
                    break
                if not self._lock.wait(PATIENCE_SECONDS):
                    tasks = self._dispatcher.describe() or "No worker has a task."
                    logger.warning("Waiting for a batch for more than %d s. %s", PATIENCE_SECONDS, tasks)
            below_low_water = self._final.below_low_water()
        if below_low_water:
            self._wake()
        if isinstance(event, nodes.Failed):
            raise event.error
        return event

    def close(self) -> None:
        """Stops; the pool can be used again unless it is closed."""
        with self._lock:
            self._closed = True
        self._wake()
        self._thread.join()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        for node in [*self._nodes, self._final]:
            node.drop()

    def _wake(self) -> None:
        os.write(self._wake_write, b"x")

    # ---- the thread

    def _run(self) -> None:
        try:
            with self._lock:
                self._pump()
            while not self._closed:
                ready = self._selector.select()
                with self._lock:
                    for key, _ in ready:
                        if key.data is None:
                            os.read(self._wake_read, 4096)
                        else:
                            self._receive(key.data)
                    if self._failure is None and not self._closed:
                        self._pump()
                    self._lock.notify_all()
        except BaseException as error:
            with self._lock:
                self._failure = self._failure or error
                self._lock.notify_all()

    def _receive(self, member: Member) -> None:
        alive = member.channel.fill()
        messages, member.channel.messages = member.channel.messages, []
        for message in messages:
            self._handle(member, message)
        if not alive:
            self._selector.unregister(member.channel)
            self._pool.closed = True
            self._failure = self._failure or died(member.name, member.status())

    def _handle(self, member: Member, message: Any) -> None:
        match message:
            case Ready():
                member.up = True
                if message.heavy:
                    logger.warning(
                        "The %s had to import %s, because a module with data parameters or processors does: it starts slowly and "
                        "needs much memory. Move those classes into a module without it.", member.name, ", ".join(message.heavy),
                    )  # fmt: skip
            case Broken():
                self._pool.closed = True
                self._failure = self._failure or raised(member.name, message.failure)
            case Unused():
                self._pool.slots.give(*message.slots)
            case Done() | TaskFailed():
                self._dispatcher.ended(member, message)
            case _:
                node = next(
                    node for node in self._nodes if isinstance(node, nodes.SerialNode) and node.member is member
                )
                node.handle(message)

    def _pump(self) -> None:
        """Lets every node do what it can: the last one first, whose output frees capacity for those before it; then down the stream."""
        for node in [*reversed(self._nodes), *self._nodes[1:]]:
            node.pump()
        first = self._nodes[0]
        while not self._exhausted and first.wants():
            event = next(self._events, None)
            if event is None:
                self._exhausted = True
                break
            first.accept(event)
            for node in self._nodes:
                node.pump()

    def _skip(self, identities: list[str]) -> None:
        if self._context.skipped is not None:
            try:
                for identity in identities:
                    self._context.skipped.add(identity)
            except DataError as error:
                self._failure = self._failure or error

    def _feed(self, cursor: Cursor, repeat: bool) -> Iterator[nodes.Begin | nodes.End | nodes.Group]:
        context = self._context
        while True:
            positions = starts(context.stages, cursor.state)
            yield nodes.Begin(cursor.epoch, positions, resumed=cursor.batch > 0)
            if not context.stages[0].source:
                chunks = index_chunks(context, cursor.epoch, cursor, feed_start(context.stages, positions))
                total = len(context.order(cursor.epoch))
                share = context.stages[0].chunk_size * 2 * max(1, self._dispatcher.workers)
                group: list[ChunkRange] = []
                for chunk in chunks:
                    assert chunk.indices is not None
                    first, stop = chunk.ordinals[0], chunk.ordinals[-1] + 1
                    group.append(ChunkRange(chunk.number, first, stop, pack_indices(chunk.indices), chunk.after))
                    # fewer chunks of a task towards the end, so that all workers end together
                    left = math.inf if repeat else (total - chunk.ordinals[-1]) / share
                    if len(group) >= min(self._dispatcher.chunks, left):
                        yield nodes.Group(cursor.epoch, None, group)
                        group = []
                if group:
                    yield nodes.Group(cursor.epoch, None, group)
                yield nodes.End(cursor.epoch)
            if not repeat:
                return
            cursor = Cursor(cursor.epoch + 1)
