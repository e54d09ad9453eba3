"""What of a training's values is new to its journal: replayed ones are not written again, differing ones start a linked branch."""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import time_ns
from typing import Any

import msgspec

from scena.training.trackers.journal import (
    Artifact,
    Branch,
    Data,
    End,
    Entry,
    JournalReader,
    JournalWriter,
    Number,
    Points,
    Tags,
    to_number,
)

logger = logging.getLogger(__name__)


@dataclass
class _Line:
    """One branch as far as it is written."""

    parent: int | None
    first: int
    last: int
    values: dict[tuple[str, int], Number] = field(default_factory=dict)
    data: set[tuple[str, int]] = field(default_factory=set)
    tags: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, int] = field(default_factory=dict)
    """By name, the last step when they were recorded."""
    ended: int = -1
    """The last step when the training ended; -1 if it has not."""

    def fits(self, values: dict[str, Number], step: int) -> bool:
        """Whether these values agree with what is written, and none would come too late."""
        return all(self.values.get((key, step), value) == value for key, value in values.items()) and (
            step >= self.last or all((key, step) in self.values for key in values)
        )

    def holds(self, values: Iterable[str], step: int) -> bool:
        """Whether at least one of these values is written."""
        return any((key, step) in self.values for key in values)


class Recorder:
    """Writes the journal of a training.

    A resumed training computes some values again. They are bit-identical, so they are known and not written. A value that differs, or
    that belongs to a step before the last one written, cannot be part of the same tracker run: it starts a branch that is linked to it.

    Args:
        path: the journal.
        identity: the identity of the training; a journal of another one is replaced.
        scenario: the name of the scenario.
        directory: the name of the run's directory.
        describe: the parameters of a branch that begins now, by dotted name.
    """

    def __init__(
        self, path: Path, identity: str, scenario: str, directory: str, describe: Callable[[], dict[str, Any]]
    ) -> None:
        self.identity = identity
        self.current = 0
        self._scenario, self._directory, self._describe = scenario, directory, describe
        self._lines: dict[int, _Line] = {}
        self._lock = threading.RLock()
        for entry in JournalReader(path).read():
            if isinstance(entry, Branch) and entry.run != identity:
                self._lines.clear()
                path.unlink()
                break
            self._note(entry)
        self._writer = JournalWriter(path)

    def begin(self, time: int | None = None) -> None:
        """Starts the first branch, if it has not begun; the time of what happened earlier is given."""
        with self._lock:
            if not self._lines:
                self._branch(None, 0, time)

    def points(self, values: dict[str, float], step: int, time: int | None = None) -> None:
        """Records numbers of a step."""
        with self._lock:
            numbers = {key: to_number(value) for key, value in values.items()}
            self._choose(numbers, step)
            line = self._lines[self.current]
            new = {key: value for key, value in numbers.items() if (key, step) not in line.values}
            if new:
                self._write(Points(self.current, step, time or _now(), new))

    def load(self, values: dict[str, float], step: int) -> None:
        """Records how busy the machine is; skipped if a later step, or this one, has been recorded."""
        with self._lock:
            line = self._lines[self.current]
            if step >= line.last and not line.holds(values, step):
                self._write(Points(self.current, step, _now(), {key: to_number(v) for key, v in values.items()}))

    def data(
        self, key: str, kind: str, step: int, write: Callable[[int], tuple[str, str]], time: int | None = None
    ) -> None:
        """Records something to look at, unless it is known; `write` stores it for a branch and returns its file's name and checksum."""
        with self._lock:
            self._choose({}, step)
            if (key, step) not in self._lines[self.current].data:
                self._write(Data(self.current, step, time or _now(), key, kind, *write(self.current)))

    def select_last(self) -> None:
        """Continues the branch that was written last, whatever a checkpoint says."""
        with self._lock:
            self.current = max(self._lines, key=lambda number: (self._lines[number].ended >= 0, number), default=0)

    def tags(self, tags: dict[str, str]) -> None:
        """Records facts, unless they are known."""
        with self._lock:
            known = self._lines[self.current].tags
            new = {name: text for name, text in tags.items() if known.get(name) != text}
            if new:
                self._write(Tags(self.current, new))

    def artifact(self, name: str, path: str) -> None:
        """Records a file or folder, once for the last step that is written."""
        with self._lock:
            line = self._lines[self.current]
            if line.artifacts.get(name) != line.last:
                self._write(Artifact(self.current, name, path))

    def end(self, time: int | None = None) -> None:
        """Records that the training has taken its last step."""
        with self._lock:
            line = self._lines[self.current]
            if line.ended != line.last:
                self._write(End(self.current, time or _now()))

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: the identity of the tracker run, and entries that a full disk has refused."""
        with self._lock:
            self._writer.sync()
            return {
                "run": self.identity,
                "branch": self.current,
                "unwritten": msgspec.to_builtins(self._writer.unwritten),
                "size": self._writer.size,
            }

    def restore(self, state: dict[str, Any]) -> None:
        """Continues the branch of a checkpoint."""
        with self._lock:
            if self._writer.size < state.get("size", 0):
                logger.warning(
                    "The journal of the trackers is shorter than at the checkpoint: values before it may be missing there."
                )
            unwritten: list[Entry] = msgspec.convert(state["unwritten"], list[Entry])
            for entry in unwritten:
                if entry.branch not in self._lines or not self._knows(entry):
                    self._write(entry)
            if state["branch"] in self._lines:
                self.current = int(state["branch"])
            else:
                logger.warning(
                    "The journal of the trackers lacks the branch of the checkpoint: values before it may be missing there."
                )
                self._branch(max(self._lines, default=None), 0)

    def close(self) -> None:
        """Closes the journal."""
        with self._lock:
            self._writer.close()

    def _choose(self, values: dict[str, Number], step: int) -> None:
        """Sets the branch that these values belong to: the current one, one that has already left it here, or a new one."""
        if not self._lines:
            self._branch(None, 0)
        while not self._lines[self.current].fits(values, step):
            children = {number: line for number, line in self._lines.items() if line.parent == self.current}
            known = [n for n, line in children.items() if line.fits(values, step) and line.holds(values, step)]
            if not known:
                self._branch(self.current, step)
                logger.warning(
                    "From step %d on, this training differs from what its trackers already hold: they get a linked run (%d).",
                    step,
                    self.current,
                )
                return
            self.current = known[-1]

    def _branch(self, parent: int | None, step: int, time: int | None = None) -> None:
        self.current = max(self._lines, default=-1) + 1
        self._write(
            Branch(
                self.identity,
                self.current,
                parent,
                step,
                time or _now(),
                self._scenario,
                self._directory,
                self._describe(),
            )
        )

    def _write(self, entry: Entry) -> None:
        self._note(entry)
        self._writer.append(entry)

    def _note(self, entry: Entry) -> None:
        if isinstance(entry, Branch):
            self._lines[entry.branch] = _Line(entry.parent, entry.step, entry.step)
            return
        line = self._lines.setdefault(entry.branch, _Line(None, 0, 0))  # its beginning is damaged
        match entry:
            case Points():
                line.values |= {(key, entry.step): value for key, value in entry.values.items()}
                line.last = max(line.last, entry.step)
            case Data():
                line.data.add((entry.key, entry.step))
            case Tags():
                line.tags |= entry.tags
            case Artifact():
                line.artifacts[entry.name] = line.last
            case End():
                line.ended = line.last

    def _knows(self, entry: Entry) -> bool:
        line = self._lines[entry.branch]
        match entry:
            case Points():
                return all((key, entry.step) in line.values for key in entry.values)
            case Data():
                return (entry.key, entry.step) in line.data
        return isinstance(entry, Branch)


def _now() -> int:
    return time_ns() // 1_000_000
