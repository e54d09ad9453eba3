"""A pipeline {next, cursor, restore, other worker count, kill a worker, raise} gives the batches of one that nothing happened to."""

import os
import signal
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from scena.data import Cursor, DataError
from tests.data.toys import (
    PIPELINES,
    FailWhileParams,
    NoiseParams,
    NumbersParams,
    SumParams,
    facts,
    first_batches,
    sequence,
    toy_pipeline,
)
from tests.reliability.machines.base import Machine

BATCHES = 40
PROCESSES = [0, None, 1, 2]
FAILING: dict[str, Any] = {
    "failing": lambda file, **s: toy_pipeline(
        NumbersParams(), sequence(NoiseParams(), FailWhileParams(file=file)), **s
    ),
    "failing serial": lambda file, **s: toy_pipeline(
        NumbersParams(), sequence(SumParams(), FailWhileParams(file=file)), **s
    ),
}


@cache
def expected(name: str) -> list[tuple[Any, ...]]:
    """The batches of a pipeline in this process."""
    return first_batches(create(name, "", 0), BATCHES)


def create(name: str, file: str, processes: int | None) -> Any:
    """A pipeline; those that can fail do so while the file exists."""
    settings = {"num_processes": processes, "on_worker_death": "restart", "prefetch": 8}
    return FAILING[name](file, **settings) if name in FAILING else PIPELINES[name](**settings)


def workers() -> list[int]:
    """The worker processes of this one."""
    children = [Path(f"/proc/self/task/{thread}/children").read_text() for thread in os.listdir("/proc/self/task")]
    pids = [int(pid) for text in children for pid in text.split()]
    return [pid for pid in pids if b"engines.workers.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


class PipelineMachine(Machine):
    """One pipeline after the other, all from cursors of the first one."""

    @initialize(name=st.sampled_from([*PIPELINES, *FAILING]), processes=st.sampled_from(PROCESSES))
    def start(self, name: str, processes: int | None) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="scena-machine-")
        self.trigger = Path(self.folder.name) / "fail"
        self.name = name
        self.place = self.deaths = 0
        self.open(processes)

    def open(self, processes: int | None) -> None:
        self.processes = processes
        self.may_fail = self.trigger.exists()
        self.pipeline = create(self.name, str(self.trigger), processes)
        cursor = Cursor.from_json(expected(self.name)[self.place - 1][-1]) if self.place else None
        self.stream = self.pipeline.stream(cursor, repeat=True)

    def close(self) -> None:
        self.stream.close()
        self.pipeline.close()

    def take(self, count: int) -> None:
        """Always ends at the same place, however short blocks are and whenever a failure shows: the next steps depend on it."""
        end = min(self.place + count, BATCHES)
        while self.place < end:
            try:
                batches = [next(self.stream)] if count == 1 else self.stream.take_block(end - self.place)
            except DataError as error:
                assert self.may_fail and "told to fail" in str(error), error
                self.trigger.unlink(missing_ok=True)
                self.restore(None, self.processes)
                continue
            found = [facts(batch) for batch in batches]
            assert found and found == expected(self.name)[self.place : self.place + len(found)]
            self.place += len(found)

    @precondition(lambda self: self.place < BATCHES)
    @rule()
    def next(self) -> None:
        self.take(1)

    @precondition(lambda self: self.place < BATCHES)
    @rule(most=st.integers(2, 6))
    def block(self, most: int) -> None:
        self.take(most)

    @precondition(lambda self: self.place < BATCHES)
    @rule(most=st.integers(1, 6))
    def make_ahead(self, most: int) -> None:
        self.stream.make_ahead(most)

    @rule()
    def cursor(self) -> None:
        after = expected(self.name)[self.place - 1][-1] if self.place else Cursor().to_json()
        assert self.stream.cursor.to_json() == after

    @rule(place=st.integers(0, BATCHES - 1) | st.none(), processes=st.sampled_from(PROCESSES))
    def restore(self, place: int | None, processes: int | None) -> None:
        """Continues from a cursor, by default the last one, with another number of processes."""
        self.close()
        self.place = self.place if place is None else place
        self.open(processes)

    @rule(place=st.integers(0, BATCHES - 1))
    def second_stream(self, place: int) -> None:
        """The same processes start again elsewhere."""
        self.stream.close()
        self.place = place
        self.stream = self.pipeline.stream(
            Cursor.from_json(expected(self.name)[place - 1][-1]) if place else None, repeat=True
        )

    @precondition(lambda self: bool(self.processes) and self.deaths < 3)
    @rule(number=st.integers(0, 9))
    def kill_a_worker(self, number: int) -> None:
        self.deaths += 1
        if there := workers():  # they start when it pays, which is not the same each time
            os.kill(there[number % len(there)], signal.SIGKILL)
        if self.place < BATCHES:
            self.take(1)

    @precondition(lambda self: self.name in FAILING)
    @rule()
    def fail(self) -> None:
        self.trigger.touch()
        self.may_fail = True

    def teardown(self) -> None:
        if hasattr(self, "stream"):
            self.close()
            self.folder.cleanup()
            assert not workers()
