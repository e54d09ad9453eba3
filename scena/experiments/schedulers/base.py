"""What runs jobs: the `Scheduler` protocol. It knows neither sheets nor searches: a `Plan` hands it jobs and hears what becomes of them."""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

MakeChannel = Callable[[], tuple[socket.socket, str, list[int]]]
GRACE = 60.0
"""Seconds that a job has to save its state after a stop request."""


class Slot(NamedTuple):
    """A place for one run at a time."""

    name: str
    environment: dict[str, str]


@dataclass
class Job:
    """A process to run."""

    key: str
    words: list[str]
    log: Path
    environment: dict[str, str] = field(default_factory=dict)
    whole_group: bool = True
    """Whether a stop request goes to all its processes, or only to the first, which ends the others itself."""
    inherited: list[int] = field(default_factory=list)
    """File descriptors that the process inherits; closed here once it has started."""
    channel: Any = None
    """A socket that the process may write to; `Plan.heard` is called when there is something to read."""
    secret: str = ""
    """What a process on another machine must send first."""


@dataclass
class Running:
    """A job that has been started."""

    job: Job
    slot: Slot
    process: Any
    """Its `LocalProcess`; None for a job on another machine."""
    started: float
    stop_sent: float | None = None
    clock: Callable[[], float] = time.monotonic

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return self.clock() - self.started


class Plan(Protocol):
    """The jobs to run."""

    def next_job(self, slot: Slot) -> Job | None:
        """The next job for a free slot; None if there is none now."""

    def waits(self) -> bool:
        """Whether there may be jobs later."""

    def started(self, running: Running) -> None:
        """A job has been started."""

    def ended(self, running: Running, status: int) -> None:
        """A job has ended; a negative status is the number of the signal that ended it."""

    def lost(self, running: Running) -> None:
        """The machine of a job is lost; the job must be repeated or resumed."""

    def heard(self, running: Running) -> bool:
        """There is something to read on a job's channel; False if it is closed."""

    def tick(self, running: list[Running]) -> None:
        """Called a few times a second."""


class Scheduler(Protocol):
    """Runs the jobs of a plan, and nothing else. Created by its `SchedulerParams`."""

    at_once: int
    """How many jobs may run at the same time, as far as it is known."""

    def run(self, plan: Plan) -> None:
        """Runs until the plan has no more jobs.

        Raises:
            Interrupted: Ctrl-C or SIGTERM; all jobs have ended.
        """

    make_channel: MakeChannel
    """Creates the channel of a job: a socket to read from, how the job reaches it, and the file descriptors that the job inherits.

    `run` calls `plan.heard` whenever a channel has something to read, since the job waits for the answer. A scheduler that cannot do
    so has no `make_channel`: values of trials are then read from their histories, and none is pruned.
    """


def local_channel() -> tuple[socket.socket, str, list[int]]:
    """A pair of sockets for a process of this machine, which inherits its end."""
    own, theirs = socket.socketpair()
    own.setblocking(False)
    descriptor = theirs.detach()
    return own, str(descriptor), [descriptor]
