"""A world with a clock of its own, in which one task runs at a time: which one is drawn from a seed, so each run can be repeated.

Tasks are greenlets: stacks of their own in one thread. Time stands still while a task runs; it moves on when all tasks wait.
"""

import queue
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet


class Killed(BaseException):
    """Ends a task, wherever it waits."""


class StuckError(AssertionError):
    """All tasks wait, and nothing will ever happen."""


class Task:
    """Something that runs in a world."""

    def __init__(self, world: "World", function: Callable[[], Any], name: str) -> None:
        self.world, self.name = world, name
        self.error: BaseException | None = None
        self.done = self.killed = False
        self.condition: Callable[[], bool] = lambda: True
        self.deadline: float | None = None

        def body() -> None:
            try:
                if not self.killed:
                    function()
            except Killed:
                pass
            except BaseException as error:
                self.error = error
            self.done = True

        self._stack = greenlet(body, world.stack)

    def ready(self) -> bool:
        return self.killed or self.condition() or (self.deadline is not None and self.deadline <= self.world.now)

    def resume(self) -> None:
        """Lets it run until it waits or ends."""
        self.world.current = self
        self._stack.switch()

    def kill(self) -> None:
        self.killed = True

    def join(self) -> None:
        """Waits for its end; in a task."""
        self.world.wait(lambda: self.done)


class World:
    """Tasks, their time and their chance."""

    def __init__(self, seed: int, longest: float = 1e5) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.longest = longest
        self.tasks: list[Task] = []
        self.current: Task | None = None
        self.stack = getcurrent()

    def clock(self) -> float:
        return self.now

    def start(self, function: Callable[[], Any], name: str = "") -> Task:
        task = Task(self, function, name)
        self.tasks.append(task)
        return task

    def wait(self, condition: Callable[[], bool] = lambda: False, timeout: float | None = None) -> bool:
        """In a task: waits until the condition is true, or time is up; returns the condition."""
        task = self.current
        assert task is not None
        task.condition, task.deadline = condition, None if timeout is None else self.now + timeout
        self.stack.switch()
        if task.killed:
            raise Killed
        return condition()

    def sleep(self, seconds: float) -> None:
        self.wait(timeout=seconds)

    def run(self) -> None:
        """Runs all tasks to their end; raises the first error, or StuckError."""
        while True:
            self.tasks = [task for task in self.tasks if not task.done]
            if not self.tasks:
                return
            ready = [task for task in self.tasks if task.ready()]
            if ready:
                task = self.rng.choice(ready)
                task.resume()
                if task.error is not None:
                    self.end()
                    raise task.error
                continue
            deadlines = [task.deadline for task in self.tasks if task.deadline is not None]
            if not deadlines or min(deadlines) > self.longest:
                waiting = ", ".join(task.name for task in self.tasks)
                self.end()
                raise StuckError(f"waits forever at {self.now}: {waiting}")
            self.now = min(deadlines)

    def end(self) -> None:
        """Ends what still waits."""
        for task in self.tasks:
            while not task.done:
                task.kill()
                task.resume()

    def queue(self) -> "WorldQueue":
        return WorldQueue(self)


class WorldQueue:
    """A queue between tasks."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def get(self, timeout: float | None = None) -> Any:
        if not self._items and not self._world.wait(lambda: bool(self._items), timeout):
            raise queue.Empty
        return self._items.popleft()
