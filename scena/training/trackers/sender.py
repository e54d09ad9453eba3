"""Brings a service up to the state of a journal: in order, each value exactly once.

Nothing is stored about what was sent. The sender asks the service what it holds, at its start and after each failure, and sends the
rest; so a kill at any moment, a lost answer or a moved directory cannot make it wrong.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import msgspec

from scena.errors import ScenaError, causes
from scena.training.trackers.journal import Artifact, Branch, Data, End, Entry, JournalReader, Points, Tags
from scena.training.trackers.media import pieces
from scena.training.trackers.service import Held, Picture, Point, ServiceError, TrackerRun, TrackerService

logger = logging.getLogger(__name__)

MOST_POINTS = 500
"""Numbers in one request."""


class SenderStatus(msgspec.Struct):
    """How far a service is, for the training's log and for `scena track`."""

    waiting: int = 0
    """Entries of the journal that it does not have yet."""
    problem: str = ""
    final: bool = False
    """Whether the problem does not get better by itself."""
    urls: list[str] = []


@dataclass
class _Open:
    """A tracker run that this process has opened."""

    run: TrackerRun
    held: Held


class Sender:
    """Sends the entries of a journal to one service.

    Args:
        journal: the journal's file.
        service: what to send to.
        root: the run's directory, which holds the artifacts.
        media: the folder with the data of the journal.
    """

    def __init__(self, journal: Path, service: TrackerService, root: Path, media: Path) -> None:
        self.service = service
        self.status = SenderStatus()
        self._reader = JournalReader(journal)
        self._root, self._media = root, media
        self._pending: list[Entry] = []
        self._runs: dict[int, TrackerRun] = {}
        self._open: dict[int, _Open] = {}

    def catch_up(self) -> bool:
        """Sends all that is in the journal; False if the service cannot be reached.

        Raises:
            ServiceError: trying again does not help.
        """
        self._pending += self._reader.read()
        self.status.waiting = len(self._pending)
        try:
            while self._pending:
                self._step()
                self.status.waiting = len(self._pending)
        except ServiceError as error:
            self.status.problem, self.status.final = str(error), True
            raise
        except Exception as error:
            self.status.problem = reason(error)
            self._open.clear()  # a request may have arrived although its answer did not: ask before sending again
            return False
        self.status.problem = ""
        return True

    def _step(self) -> None:
        """Sends the next entry, or as many points as fit into one request."""
        entry = self._pending[0]
        if isinstance(entry, Branch):
            self._runs[entry.branch] = TrackerRun(entry)
            self._opened(entry.branch)
            del self._pending[0]
            return
        if entry.branch not in self._runs:
            raise ServiceError(f"The journal does not say how branch {entry.branch} began: it is damaged.")
        opened = self._opened(entry.branch)
        if isinstance(entry, Points):
            same = next(
                groupby(self._pending, lambda other: isinstance(other, Points) and other.branch == entry.branch)
            )
            count = self._send_points(opened, [each for each in same[1] if isinstance(each, Points)])
            del self._pending[:count]
            return
        self._send_other(opened.run, entry)
        del self._pending[0]

    def _opened(self, branch: int) -> _Open:
        if branch not in self._open:
            run = self._runs[branch]
            self._open[branch] = _Open(run, self.service.open(run))
            if (url := self.service.url(run)) is not None and url not in self.status.urls:
                self.status.urls.append(url)
        return self._open[branch]

    def _send_points(self, opened: _Open, entries: list[Points]) -> int:
        """Sends the first of these entries, and returns how many they were."""
        points: list[Point] = []
        count = 0
        for entry in entries:
            if points and len(points) + len(entry.values) > MOST_POINTS:
                break
            points += self._new(opened, entry)
            count += 1
        if points:
            self.service.send(opened.run, points)
            opened.held |= {(self.service.name(point.key), point.step): point.value for point in points}
        return count

    def _new(self, opened: _Open, entry: Points) -> Iterable[Point]:
        for key, number in entry.values.items():
            value, held = float(number), opened.held.get((self.service.name(key), entry.step))
            if held is None:
                yield Point(key, entry.step, entry.time, value)
            elif not self.service.same(held, value):
                raise ServiceError(
                    f"The tracker's run {opened.run.identity} has {key} = {held} at step {entry.step}, and this training has {value}. "
                    "Has the run's directory been copied, and the copy been trained? Nothing more is sent to this run."
                )

    def _send_other(self, run: TrackerRun, entry: Data | Tags | Artifact | End | Branch | Points) -> None:
        match entry:
            case Tags():
                run.tags |= entry.tags
                self.service.send_tags(run, entry.tags)
            case Data():
                for piece in pieces(entry, self._media):
                    if isinstance(piece, Picture):
                        self.service.send_picture(run, piece)
                    else:
                        self.service.send_text(run, entry.key, entry.step, piece)
            case Artifact():
                path = (self._root / entry.path).resolve()
                # a resumed training may have removed it; a journal of somebody else must not send other files
                if path.exists() and path.is_relative_to(self._root.resolve()):
                    self.service.send_artifact(run, entry.name, path)
            case End():
                self.service.end(run, entry.time)


def send_until(
    sender: Sender, go_on: Callable[[float], bool], report: Callable[[SenderStatus], None], longest: float = 30.0
) -> bool:
    """Catches up again and again; with growing pauses while the service cannot be reached.

    Args:
        go_on: waits for news, at most for the given seconds; returns False when the next attempt is to be the last.
        report: called after each attempt.
        longest: the longest pause in seconds.

    Returns:
        Whether the service has everything.
    """
    pause, more = 1.0, True
    while True:
        done = sender.catch_up()
        report(sender.status)
        if not more:
            return done
        pause = 1.0 if done else min(2 * pause, longest)
        until = time.monotonic() + pause
        more = go_on(3600.0 if done else pause)
        if more and not done:
            while more and (left := until - time.monotonic()) > 0:
                more = go_on(left)


def reason(error: BaseException) -> str:
    """The message of an error in one line: that of the system, if it is the cause, without credentials of an address."""
    for cause in () if isinstance(error, ScenaError) else causes(error):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    text = re.sub(r"//[^/\s@]+@", "//", " ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:80]}…{text[-119:]}"  # the cause comes last
