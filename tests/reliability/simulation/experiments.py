"""A sheet of runs on the local scheduler: processes and drivers die at any time, are stopped, and are started twice at once.

Everything but processes and time is real: the plan, the scheduler, the registry and its locks.
"""

import os
import shutil
import signal
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from scena.errors import Interrupted
from scena.experiments.schedulers.base import Job, Running
from scena.experiments.schedulers.local import LocalScheduler
from scena.experiments.schedulers.params import LocalParams
from scena.experiments.sheets.experiment import Experiment
from scena.experiments.sheets.run_registry import DONE
from scena.experiments.sheets.sheet import SheetRun
from scena.storage.run_layout import PARAMS_FILE
from tests.reliability.simulation.world import Killed, World

EPOCHS = 3


class Trainings:
    """What the trainings of a sheet have stored, and who runs."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.epochs: Counter[str] = Counter()
        self.running: dict[str, Training] = {}
        self.finished: set[str] = set()
        self.recorded: set[str] = set()
        """Those whose end a driver has recorded; one that died before it starts them once more, which resumes nothing."""
        self.counts: Counter[str] = Counter()
        rng = world.rng
        self.dies, self.fails = rng.choice([0, 0, 0.1]), rng.choice([0, 0, 0.1])


class Training:
    """The process of a run."""

    def __init__(self, trainings: Trainings, driver: "Driver", job: Job) -> None:
        self.trainings, self.driver, self.key = trainings, driver, job.key
        self.signals: list[int] = []
        self.status: int | None = None
        self.inherited = [os.dup(descriptor) for descriptor in job.inherited]
        assert self.key not in trainings.running, f"run {self.key} runs twice at once"
        assert self.key not in trainings.recorded, f"run {self.key} runs again, although it is done"
        trainings.running[self.key] = self
        trainings.counts["processes"] += 1
        driver.children.append(self)
        trainings.world.start(self._run, f"run {self.key}")

    def _run(self) -> None:
        self.status = self._train()
        if self.status == 0:
            self.trainings.finished.add(self.key)
        for descriptor in self.inherited:
            os.close(descriptor)
        del self.trainings.running[self.key]

    def _train(self) -> int:
        own, world = self.trainings, self.trainings.world
        directory = own.folder / "runs" / self.key
        while own.epochs[self.key] < EPOCHS:
            world.wait(lambda: bool(self.signals), world.rng.uniform(0.01, 2))
            if self.signals and signal.SIGKILL not in self.signals:  # stops, and takes its time to store the state
                world.wait(lambda: signal.SIGKILL in self.signals, world.rng.choice([0.01, 5, 200]))
                if signal.SIGKILL not in self.signals:
                    return 143
            if signal.SIGKILL in self.signals or world.rng.random() < own.dies:
                return -signal.SIGKILL
            if world.rng.random() < own.fails:
                return 1
            directory.mkdir(parents=True, exist_ok=True)
            (directory / PARAMS_FILE).touch()
            own.epochs[self.key] += 1
        return 0

    def wait(self) -> int:
        if self.driver.dead:
            raise Killed
        self.trainings.world.wait(lambda: self.status is not None)
        assert self.status is not None
        return self.status

    def send_signal(self, number: int, *, group: bool) -> None:
        if not self.driver.dead:
            self.signals.append(number)


class RecordingExperiment(Experiment):
    """Tells the trainings whose end is recorded."""

    trainings: Trainings

    def ended(self, running: Running, status: int) -> None:
        super().ended(running, status)
        if status == 0:
            self.trainings.recorded.add(running.job.key)


class Driver:
    """A process of `scena experiment`; a selector for its scheduler, too."""

    def __init__(self, trainings: Trainings, runs: list[SheetRun], slots: int) -> None:
        self.trainings, self.world = trainings, trainings.world
        self.children: list[Training] = []
        self.dead = False
        self.stop_requests = 0
        self._watched: dict[Any, Any] = {}
        self.experiment = RecordingExperiment(runs, trainings.folder, "python")
        self.experiment.trainings = trainings
        self.scheduler = LocalScheduler(
            LocalParams(cpus=[slots]),
            clock=self.world.clock,
            start=lambda job, slot: Training(trainings, self, job),
            selector=lambda: self,  # type: ignore[arg-type, return-value]
        )
        self.task = self.world.start(self._run, "driver")

    def _run(self) -> None:
        try:
            self.scheduler.run(self.experiment)
        except Interrupted:
            self.trainings.counts["stopped"] += 1

    def die(self) -> None:
        """Ends at once; the system sends SIGTERM to its children."""
        if not self.task.done:
            self.dead = True
            self.task.kill()
            for child in self.children:
                child.signals.append(signal.SIGTERM)

    # ---- a selector

    def __enter__(self) -> "Driver":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def register(self, process: Training, events: int, data: Any) -> None:
        self._watched[process] = data

    def unregister(self, process: Training) -> None:
        del self._watched[process]

    def select(self, timeout: float) -> list[tuple[Any, int]]:
        def ready() -> list[Training]:
            return [process for process in self._watched if process.status is not None]

        self.world.wait(lambda: bool(ready() or self.stop_requests), timeout)
        while self.stop_requests:
            self.stop_requests -= 1
            self.scheduler._notice(signal.SIGTERM, None)
        return [(_Key(self._watched[one]), 1) for one in ready()]


class _Key:
    def __init__(self, data: Any) -> None:
        self.data = data


def simulate(seed: int) -> Counter[str]:
    """One schedule: commands until all runs are done. Raises AssertionError if one runs twice, is lost, or waits forever."""
    world = World(seed)
    rng = world.rng
    folder = Path(tempfile.mkdtemp(prefix="scena-simulation-", dir="/dev/shm"))
    trainings = Trainings(world, folder)
    runs = [SheetRun(str(number), ["scena", "train", "x"], []) for number in range(rng.randint(1, 5))]

    def user() -> None:
        for _ in range(100):
            drivers = [Driver(trainings, runs, rng.randint(1, 3))]
            if rng.random() < 0.3:
                world.sleep(rng.uniform(0, 3))
                drivers.append(Driver(trainings, runs, rng.randint(1, 3)))
                trainings.counts["two drivers"] += 1
            for driver in drivers:
                kind = rng.random()
                if kind < 0.3:
                    world.sleep(rng.uniform(0, 6))
                    trainings.counts["deaths"] += not driver.task.done
                    driver.die()
                elif kind < 0.5:
                    world.sleep(rng.uniform(0, 6))
                    driver.stop_requests = rng.choice([1, 1, 2])
            for driver in drivers:
                driver.task.join()
            entries = [drivers[-1].experiment.registry.read(run.id) for run in runs]
            if all(entry is not None and entry.status == DONE for entry in entries):
                return
        raise AssertionError("the runs never end")

    try:
        world.start(user, "user")
        world.run()
        assert trainings.finished == {run.id for run in runs}, "a run is lost"
        assert all(trainings.epochs[run.id] == EPOCHS for run in runs)
    finally:
        shutil.rmtree(folder)
    trainings.counts["runs"] += len(runs)
    return trainings.counts
