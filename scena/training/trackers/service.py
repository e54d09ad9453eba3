"""The side of a tracker that talks to its service. It runs in the sender's process, so it may be slow, fail and be killed."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scena.errors import ScenaError
from scena.training.trackers.journal import Branch

Held = dict[tuple[str, int], float]
"""Numbers of a tracker run, by the service's name of their key and by step."""


class ServiceError(ScenaError):
    """A service cannot be used as it is set up; trying again does not help."""


@dataclass(frozen=True)
class Point:
    """A number of one step."""

    key: str
    step: int
    time: int
    """Milliseconds since 1970."""
    value: float


@dataclass(frozen=True)
class Picture:
    """An image of one step, as a PNG file."""

    key: str
    step: int
    time: int
    file: Path


@dataclass
class TrackerRun:
    """A run of a tracker: that of the training, or one that is linked to it."""

    branch: Branch
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Unique, and the same in every process; services that let us choose the id of a run use it."""
        return run_id(self.branch.run, self.branch.branch)

    @property
    def parent(self) -> str | None:
        """The identity of the run that this one continues."""
        return None if self.branch.parent is None else run_id(self.branch.run, self.branch.parent)

    @property
    def name(self) -> str:
        """A name for people."""
        number = self.branch.branch
        return self.branch.directory if number == 0 else f"{self.branch.directory} (linked run {number})"

    def described(self) -> dict[str, str]:
        """The tags that every service gets."""
        own = {"scena.run": self.identity, "scena.scenario": self.branch.scenario}
        if self.parent is not None:
            own |= {"scena.continues": self.parent, "scena.from_step": str(self.branch.step)}
        return {**own, **self.tags}


def run_id(run: str, branch: int) -> str:
    """The identity of a tracker run."""
    return run if branch == 0 else f"{run}-{branch}"


class TrackerService(ABC):
    """Brings tracker runs up to date. Every method may be called again after it has failed, with the same arguments.

    An exception of any kind means "not now": the sender waits, asks again what the service holds, and continues from there. Raise
    `ServiceError` for what does not get better by itself.

    Args:
        params: the tracker's parameters.
        directory: a folder of the run for the files of this service.
    """

    def __init__(self, params: Any, directory: Path) -> None:
        self.params = params
        self.directory = directory

    @abstractmethod
    def open(self, run: TrackerRun) -> Held:
        """Finds the run or creates it, with its parameters, and returns all numbers that it holds."""

    @abstractmethod
    def send(self, run: TrackerRun, points: list[Point]) -> None:
        """Adds numbers, in their order; none of them is there yet."""

    def send_picture(self, run: TrackerRun, picture: Picture) -> None:  # noqa: B027
        """Adds an image, unless it is there."""

    def send_text(self, run: TrackerRun, key: str, step: int, text: str) -> None:  # noqa: B027
        """Adds a text, unless it is there."""

    def send_tags(self, run: TrackerRun, tags: dict[str, str]) -> None:  # noqa: B027
        """Sets tags."""

    def send_artifact(self, run: TrackerRun, name: str, path: Path) -> None:  # noqa: B027
        """Adds a file or folder in place of an older one of the same name."""

    def end(self, run: TrackerRun, time: int) -> None:  # noqa: B027
        """Marks the run as finished."""

    def name(self, key: str) -> str:
        """The name under which the service holds the numbers of a key."""
        return key

    def same(self, held: float, value: float) -> bool:
        """Whether a number that the service holds is this one."""
        return held == value or (math.isnan(held) and math.isnan(value))

    def url(self, run: TrackerRun) -> str | None:
        """Where a person finds the run; never with credentials in it."""
        return None

    def close(self) -> None:  # noqa: B027
        """Writes what is still in memory; the process ends."""
