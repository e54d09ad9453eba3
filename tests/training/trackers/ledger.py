"""A service as another package would bring it: a text file that anybody can read, which fails and is killed when a test wants it."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from scena import TrackerService, TrackerServiceParams, param
from scena.training.trackers.service import Held, Point, TrackerRun


class LedgerParams(TrackerServiceParams, name="ledger", builds=":Ledger"):
    """Writes a line of a text file for everything it gets."""

    file: Path = param(required=True, help="the file to append to")
    down: Path | None = param(None, help="the service cannot be reached while this file exists")
    kill_at: int = param(0, ge=0, help="the sender is killed in the middle of this request (0: never)")


class Ledger(TrackerService):
    """The answer to a request can get lost: the sender is killed after half of it was written."""

    params: LedgerParams
    requests = 0

    def open(self, run: TrackerRun) -> Held:
        self._reach()
        if not any(line[:2] == [run.identity, "run"] for line in read(self.params.file)):
            self._write(run, "run", {"continues": run.parent, "from": run.branch.step, "params": run.branch.params})
        points = [line[2:] for line in read(self.params.file) if line[:2] == [run.identity, "point"]]
        return {(key, step): float(value) for key, step, value in points}

    def send(self, run: TrackerRun, points: list[Point]) -> None:
        self._reach()
        Ledger.requests += 1
        for number, point in enumerate(points):
            if Ledger.requests == self.params.kill_at and number == (len(points) + 1) // 2:
                os.kill(os.getpid(), signal.SIGKILL)
            self._write(run, "point", point.key, point.step, repr(point.value))
        if Ledger.requests == self.params.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def send_tags(self, run: TrackerRun, tags: dict[str, str]) -> None:
        self._reach()
        self._write(run, "tags", tags)

    def send_picture(self, run: TrackerRun, picture: Any) -> None:
        self._write(run, "picture", picture.key, picture.step, str(picture.file))

    def send_text(self, run: TrackerRun, key: str, step: int, text: str) -> None:
        self._write(run, "text", key, step, text)

    def send_artifact(self, run: TrackerRun, name: str, path: Path) -> None:
        self._write(run, "artifact", name, str(path))

    def end(self, run: TrackerRun, time: int) -> None:
        self._write(run, "end")

    def _reach(self) -> None:
        if self.params.down is not None and self.params.down.exists():
            raise ConnectionError("http://somebody:secret@ledger refused the connection")

    def _write(self, run: TrackerRun, *what: Any) -> None:
        with self.params.file.open("a") as file:
            file.write(json.dumps([run.identity, *what]) + "\n")


def read(file: Path) -> list[list[Any]]:
    """What was written to the ledger."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def points(file: Path) -> dict[str, list[tuple[str, int, float]]]:
    """The numbers of each tracker run, in the order in which they came."""
    found: dict[str, list[tuple[str, int, float]]] = {}
    for run, kind, *rest in read(file):
        if kind == "point":
            found.setdefault(run, []).append((rest[0], rest[1], float(rest[2])))
    return found
