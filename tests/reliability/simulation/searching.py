"""A search on the local scheduler: trials and commands die at any time, report in pieces, are ended early, and are started twice at once.

Everything but processes, sockets and time is real: Optuna's study (in memory, with other tasks running between any two of its operations),
the search, the scheduler, locks, and the files of the runs.
"""

import contextlib
import csv
import fcntl
import json
import os
import random
import shutil
import signal
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from scena.errors import Interrupted
from scena.experiments.schedulers.base import Job
from scena.experiments.schedulers.local import LocalScheduler
from scena.experiments.schedulers.params import LocalParams
from scena.experiments.search.search import Search
from scena.experiments.search.space import SearchSpace, parse_axis
from scena.experiments.search.trial import PATIENCE
from scena.experiments.sheets.run_registry import RunRegistry
from scena.params import Params, param
from scena.storage.run_layout import HISTORY_FILE, PARAMS_FILE
from tests.reliability.simulation.world import Killed, World

EPOCHS = 4
METRIC = "val_loss"


class Root(Params):
    """What varies."""

    x: float = param(0.5, help="the only parameter")


SPACE = SearchSpace([parse_axis("x=0.1:0.9")], Root(), [])


class WatchedStorage(optuna.storages.InMemoryStorage):
    """A study that survives the processes. An operation may take time, in which others run, or the one that asks dies."""

    world: World | None = None

    def trials_now(self) -> list[Any]:
        """All trials, at once."""
        return optuna.storages.InMemoryStorage.get_all_trials(self, self.get_study_id_from_name("s"))

    def _pause(self) -> None:
        if self.world is not None and self.world.current is not None:
            self.world.sleep(self.world.rng.choice([0, 0, 0, 0.3]))


def _pausing(name: str) -> Any:
    original = getattr(optuna.storages.InMemoryStorage, name)

    def method(self: WatchedStorage, *args: Any, **kwargs: Any) -> Any:
        self._pause()
        return original(self, *args, **kwargs)

    return method


for _name in (
    "create_new_trial", "set_trial_state_values", "set_trial_user_attr", "set_trial_intermediate_value", "get_all_trials",
):  # fmt: skip
    setattr(WatchedStorage, _name, _pausing(_name))


class Pipe:
    """The channel of a trial: a socket for its search, and the other end for the trial."""

    _numbers = iter(range(10**9, 10**18))

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.number = rng, next(self._numbers)
        self.sent, self.answers = b"", b""
        self.ended = False

    def fileno(self) -> int:
        return self.number

    def readable(self) -> bool:
        return self.number >= 0 and (bool(self.sent) or self.ended)

    def recv(self, most: int) -> bytes:
        if not self.sent and not self.ended:
            raise BlockingIOError
        size = self.rng.choice([1, 5, most])
        text, self.sent = self.sent[:size], self.sent[size:]
        return text

    def sendall(self, text: bytes) -> None:
        if self.ended:
            raise BrokenPipeError
        self.answers += text

    def close(self) -> None:
        self.number = -1


class Shared:
    """What the trials have stored, and who runs."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.running: set[str] = set()
        self.stopped: set[str] = set()
        """Runs that the search has ended early."""
        self.failed: set[str] = set()
        self.counts: Counter[str] = Counter()
        rng = world.rng
        self.dies, self.fails = rng.choice([0, 0, 0.1]), rng.choice([0, 0, 0.1])
        self.locks = iter(range(1000, 10**6))
        """Numbers of file descriptors, none of them twice, so that those of a process that died can be closed."""


class Training:
    """The process of a trial, or of one of its seeds."""

    def __init__(self, shared: Shared, driver: "Driver", job: Job) -> None:
        self.shared, self.driver, self.key = shared, driver, job.key
        self.directory = Path(next(word for word in reversed(job.words) if str(shared.folder) in word).split("=")[-1])
        self.pipe: Pipe = job.channel
        self.signals: list[int] = []
        self.status: int | None = None
        self.inherited = [os.dup(descriptor) for descriptor in job.inherited]
        state = driver.storage.trials_now()[int(self.key.partition("-")[0])].state
        assert self.key not in shared.running, f"trial {self.key} runs twice at once"
        assert state is TrialState.RUNNING, f"trial {self.key} runs again, although it is {state.name}"
        shared.running.add(self.key)
        shared.counts["processes"] += 1
        driver.children.append(self)
        shared.world.start(self._run, f"trial {self.key}")

    def _run(self) -> None:
        self.status = self._train()
        self.pipe.ended = True
        for descriptor in self.inherited:
            os.close(descriptor)
        self.shared.running.discard(self.key)

    def _train(self) -> int:
        shared, world = self.shared, self.shared.world
        if self.key in shared.stopped:
            return 0
        while (epoch := len(rows(self.directory)) + 1) <= EPOCHS:
            world.wait(lambda: bool(self.signals), world.rng.uniform(0.01, 2))
            if self.signals and signal.SIGKILL not in self.signals:
                world.wait(lambda: signal.SIGKILL in self.signals, world.rng.choice([0.01, 5, 200]))
                if signal.SIGKILL not in self.signals:
                    return 143
            if signal.SIGKILL in self.signals or world.rng.random() < shared.dies:
                return -signal.SIGKILL
            if world.rng.random() < shared.fails:
                shared.failed.add(self.key)
                return 1
            if world.rng.random() < 0.5:  # a checkpoint comes sometimes before the report, sometimes after it
                self._store(epoch)
            stop = self._report(epoch)
            if signal.SIGKILL in self.signals:
                return -signal.SIGKILL
            if len(rows(self.directory)) < epoch:
                self._store(epoch)
            if stop:
                shared.stopped.add(self.key)
                return 0
        return 0

    def _store(self, epoch: int) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        trainer = {"epochs": EPOCHS, "export_final": False}
        (self.directory / PARAMS_FILE).write_text(json.dumps({"scenario": "x", "trainer": trainer}))
        stored = [*rows(self.directory), {"epoch": epoch, "step": epoch, METRIC: value_of(self.key, epoch)}]
        with (self.directory / HISTORY_FILE).open("w", newline="") as file:
            writer = csv.DictWriter(file, stored[0])
            writer.writeheader()
            writer.writerows(stored)

    def _report(self, epoch: int) -> bool:
        pipe, world = self.pipe, self.shared.world
        if pipe.number < 0 or self.driver.dead:
            return False
        pipe.sent += json.dumps({"epoch": epoch, "value": value_of(self.key, epoch), "key": METRIC}).encode() + b"\n"
        answered = world.wait(
            lambda: b"\n" in pipe.answers or self.driver.dead or signal.SIGKILL in self.signals, PATIENCE
        )
        line, _, pipe.answers = pipe.answers.partition(b"\n")
        return bool(answered and line and json.loads(line)["stop"])

    def wait(self) -> int:
        if self.driver.dead:
            raise Killed
        assert self.status is not None
        return self.status

    def send_signal(self, number: int, *, group: bool) -> None:
        if not self.driver.dead:
            self.signals.append(number)


def rows(directory: Path) -> list[dict[str, Any]]:
    if not (directory / HISTORY_FILE).exists():
        return []
    with (directory / HISTORY_FILE).open(newline="") as file:
        return list(csv.DictReader(file))


def value_of(key: str, epoch: int) -> float:
    return random.Random(f"{key} {epoch}").random()


class Locks(RunRegistry):
    """Remembers which locks a process holds: they are free when it dies."""

    def __init__(self, directory: Path, driver: "Driver") -> None:
        super().__init__(directory)
        self.driver = driver

    def lock(self, key: str) -> int | None:
        found = super().lock(key)
        if found is None:
            return None
        own = fcntl.fcntl(found, fcntl.F_DUPFD_CLOEXEC, next(self.driver.shared.locks))
        os.close(found)
        self.driver.locks.add(own)
        return own


class Driver:
    """A process of `scena tune`; a selector for its scheduler, too."""

    def __init__(self, shared: Shared, storage: WatchedStorage, seeds: list[int], trials: int, slots: int) -> None:
        self.shared, self.world, self.storage, self.seeds, self.trials = shared, shared.world, storage, seeds, trials
        self.children: list[Training] = []
        self.locks: set[int] = set()
        self.dead = False
        self.stop_requests = 0
        self._watched: dict[Any, Any] = {}
        self.scheduler = LocalScheduler(
            LocalParams(cpus=[slots]),
            clock=self.world.clock,
            start=lambda job, slot: Training(shared, self, job),
            selector=lambda: self,  # type: ignore[arg-type, return-value]
        )
        self.search: Any = None
        self.task = self.world.start(self._run, "driver")

    def _run(self) -> None:
        rng = self.world.rng
        study = optuna.load_study(
            study_name="s",
            storage=self.storage,
            sampler=optuna.samplers.RandomSampler(seed=rng.randrange(2**31)),
            pruner=rng.choice([optuna.pruners.NopPruner(), optuna.pruners.MedianPruner(2, 1)])
            if not self.seeds
            else optuna.pruners.NopPruner(),
        )

        def channel() -> tuple[Any, str, list[int]]:
            return Pipe(rng), "0", []

        self.search = Search(
            study, SPACE, ["scena", "train", "x"], self.shared.folder, "python", self.trials, METRIC,
            make_channel=channel, seeds=self.seeds,
        )  # fmt: skip
        self.search.registry = Locks(self.shared.folder / "locks", self)
        try:
            self.scheduler.run(self.search)
        except Interrupted:
            self.shared.counts["stopped"] += 1
        finally:
            self._close_locks()
        assert not self.search.running

    def _close_locks(self) -> None:
        for descriptor in self.locks:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.locks.clear()

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

    def register(self, watched: Any, events: int, data: Any) -> None:
        self._watched[watched] = data

    def unregister(self, watched: Any) -> None:
        del self._watched[watched]

    def select(self, timeout: float) -> list[tuple[Any, int]]:
        def ready() -> list[Any]:
            return [
                one for one in self._watched if (one.readable() if isinstance(one, Pipe) else one.status is not None)
            ]

        self.world.wait(lambda: bool(ready() or self.stop_requests), timeout)
        while self.stop_requests:
            self.stop_requests -= 1
            self.scheduler._notice(signal.SIGTERM, None)
        return [(_Key(self._watched[one]), 1) for one in ready()]


class _Key:
    def __init__(self, data: Any) -> None:
        self.data = data


def simulate(seed: int) -> Counter[str]:
    """One schedule: commands until the study is complete. Raises AssertionError if a trial runs twice, is lost, or waits forever."""
    world = World(seed, longest=5000)
    rng = world.rng
    folder = Path(tempfile.mkdtemp(prefix="scena-simulation-", dir="/dev/shm"))
    shared = Shared(world, folder)
    storage = WatchedStorage()
    optuna.create_study(study_name="s", storage=storage)
    storage.world = world
    seeds = rng.choice([[], [], [3, 8]])
    trials = rng.randint(1, 4)

    def user() -> None:
        for _ in range(100):
            drivers = [Driver(shared, storage, seeds, trials, rng.randint(1, 3))]
            if rng.random() < 0.3:
                world.sleep(rng.uniform(0, 3))
                drivers.append(Driver(shared, storage, seeds, trials, rng.randint(1, 3)))
                shared.counts["two drivers"] += 1
            for driver in drivers:
                kind = rng.random()
                if kind < 0.3:
                    world.sleep(rng.uniform(0, 6))
                    shared.counts["deaths"] += not driver.task.done
                    driver.die()
                elif kind < 0.5:
                    world.sleep(rng.uniform(0, 6))
                    driver.stop_requests = rng.choice([1, 1, 2])
            for driver in drivers:
                driver.task.join()
            states = [trial.state for trial in storage.trials_now()]
            if len(states) >= trials and all(state.is_finished() for state in states):
                return
        raise AssertionError("the trials never end")

    try:
        world.start(user, "user")
        world.run()
        for trial in storage.trials_now():
            _check(trial, trials, seeds, shared)
    finally:
        shutil.rmtree(folder)
    return shared.counts


def _check(trial: Any, trials: int, seeds: list[int], shared: Shared) -> None:
    """Whether what the study knows of a trial is what its runs have stored."""
    name = f"{trial.number:04}"
    keys = [f"{name}-seed-{seed}" for seed in seeds] or [name]
    shared.counts[trial.state.name.lower()] += 1
    if trial.state is TrialState.FAIL:
        more = trial.user_attrs.get("error") == "one more than requested"
        assert (more and trial.number >= trials) or shared.failed & set(keys) or shared.dies, f"trial {name} failed"
        return
    assert trial.number < trials
    directories = [shared.folder / "trials" / name / f"seed-{seed}" for seed in seeds] or [
        shared.folder / "trials" / name
    ]
    best = []
    for key, directory in zip(keys, directories, strict=True):
        stored = {int(row["epoch"]): float(row[METRIC]) for row in rows(directory)}
        assert stored == {epoch: value_of(key, epoch) for epoch in range(1, len(stored) + 1)}
        best.append(min(stored.values()))
        if trial.state is TrialState.COMPLETE:
            assert len(stored) == EPOCHS, f"trial {name} has {len(stored)} epochs"
        if not seeds:
            assert trial.intermediate_values == stored, f"trial {name} lost a value"
    if trial.state is TrialState.COMPLETE:
        assert abs(trial.value - sum(best) / len(best)) < 1e-12
