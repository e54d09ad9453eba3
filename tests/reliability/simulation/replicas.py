"""The processes of a distributed training: the chief sends commands, workers follow; processes die, freeze, fail and are asked to stop.

Real are the control channel, the replica group of the chief, and the workers. A collective operation, TensorFlow's in a training, is a
meeting here: it ends when all processes have come to it, or when one of them is found lost.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

from scena.backends.selection import WorkerLostError
from scena.data.sample import Batch, Cursor
from scena.errors import TrainingError, TrainingInterrupted
from scena.training.distribution.control_channel import Command, ControlChannel
from scena.training.distribution.replica_group import ReplicaGroup, Worker
from scena.training.steps import LONGEST_BLOCK
from tests.reliability.simulation.world import Killed, World

HEARTBEAT = 10.0
"""Seconds after which a process that does not respond is lost."""
BATCHES = 12


class Cluster:
    """The meetings of some processes."""

    def __init__(self, world: World, count: int) -> None:
        self.world, self.count = world, count
        self.rounds: list[dict[int, tuple[str, Any]]] = []
        self.silent: dict[int, float] = {}
        """Since when a process has been dead or frozen."""
        self.counts: Counter[str] = Counter()

    def meet(self, index: int, number: int, kind: str, value: Any) -> list[Any]:
        """Brings a value to a meeting; returns those of all processes."""
        world = self.world
        while len(self.rounds) <= number:
            self.rounds.append({})
        here = self.rounds[number]
        here[index] = (kind, value)
        kinds = {other for other, _ in here.values()}
        assert len(kinds) == 1, f"processes are in different operations: {kinds}"

        def lost() -> bool:
            return any(one not in here and world.now - since >= HEARTBEAT for one, since in self.silent.items())

        while len(here) < self.count:
            if lost() or self.silent.get(index, world.now) + HEARTBEAT <= world.now:
                raise WorkerLostError("A worker is lost.")
            world.wait(lambda: len(here) == self.count or lost(), HEARTBEAT)
        return [here[one][1] for one in sorted(here)]


class Process:
    """One process: its engine, its distribution and its data, as far as the group and the channel need them."""

    def __init__(self, cluster: Cluster, index: int) -> None:
        self.all, self.index, self.met = cluster, index, 0
        self.steps: list[int] = []
        self.states: list[Any] = []
        self.state: Any = None
        self.reason: str | None = None
        self.freezes = 0.0
        self.ending: str | int | None = None

    def meet(self, kind: str, value: Any = None) -> list[Any]:
        self.met += 1
        if self.freezes:
            cluster, seconds, self.freezes = self.all, self.freezes, 0.0
            cluster.silent[self.index] = cluster.world.now
            cluster.world.sleep(seconds)
            if seconds >= HEARTBEAT:
                raise WorkerLostError("The others have given this process up.")
            del cluster.silent[self.index]
        return self.all.meet(self.index, self.met - 1, kind, value)

    # ---- a distribution

    @property
    def chief(self) -> bool:
        return self.index == 0

    @property
    def cluster(self) -> range:
        return range(self.all.count)

    # ---- an engine

    def pack_layers(self) -> bytes:
        return self.all.world.rng.randbytes(self.all.world.rng.choice([0, 1, 5000]))

    def begin(self, content: bytes) -> None:
        assert len(set(self.meet("begin", content))) == 1, "the state of layers differs"

    def spread(self) -> None:
        self.state = self.meet("spread", self.state)[0]

    def common_steps(self, ready: int, most: int) -> int:
        met = self.meet("agree", (ready, most))
        assert {total for _, total in met} == {most}, "processes are to take different numbers of steps"
        return min(one for one, _ in met)

    def train(
        self, inputs: Any, targets: Any, counted: Any, total: Any, flag: float = 0.0
    ) -> tuple[list[dict[str, float]], float]:
        flags = 0.0
        for turn, number in enumerate(inputs["x"][:, 0]):
            met = self.meet("train", (turn, int(number), flag))
            assert len({one for one, _, _ in met}) == 1, (
                "TensorFlow would wait forever: its loops are at different turns"
            )
            assert len({one for _, one, _ in met}) == 1, "processes train on different batches"
            flags = max(flags, sum(one for _, _, one in met))
            self.steps.append(int(number))
            self.state = (self.state, int(number))
        return [{} for _ in inputs["x"]], flags

    def test(self, inputs: Any, targets: Any, counted: Any, total: Any) -> None:
        self.all.world.sleep(0.01)  # each process on its own

    def collect(self) -> dict[str, float]:
        self.meet("collect")
        return {"val_loss": 0.0}

    # ---- data: batches in blocks of any length, as a slow pipeline gives them

    @contextmanager
    def stream(self, cursor: Cursor | None = None, repeat: bool = False) -> Any:
        yield Stream(self, 0 if cursor is None else cursor.batch)


class Stream:
    """Consecutive batches."""

    def __init__(self, process: Process, position: int) -> None:
        self.process, self.position = process, position

    def take_block(self, most: int) -> list[Batch]:
        world = self.process.all.world
        world.sleep(world.rng.choice([0, 0.01, 1]))
        count = min(world.rng.randint(1, most), BATCHES - self.position)
        block = []
        for number in range(self.position, self.position + count):
            block.append(Batch({"x": np.array([number])}, {}, [None], 1, Cursor(batch=number + 1)))
        self.position += count
        return block

    def make_ahead(self, batches: int) -> None:
        """Nothing is prepared."""

    def close(self) -> None:
        """Nothing is open."""


class Data:
    """A pipeline whose stream is not a context."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def stream(self, cursor: Cursor, *, repeat: bool) -> Stream:
        return Stream(self.process, cursor.batch)


class Channel(ControlChannel):
    """Sends over a meeting."""

    def __init__(self, process: Process) -> None:
        self.distribution = process  # type: ignore[assignment]

    def _exchange_frame(self, frame: Any) -> Any:
        return sum(self.distribution.meet("frame", frame))  # type: ignore[attr-defined]


class Run:
    """What a worker knows of a training."""

    def __init__(self, process: Process) -> None:
        self.engine, self.train_data, self.val_data = process, Data(process), process


def chief(process: Process, fails: float) -> None:
    """A training of some epochs, as the loop leads it."""
    rng, world = process.all.world.rng, process.all.world
    channel = Channel(process)
    channel.set_up({"seed": rng.randrange(1000), "names": ["x"] * rng.choice([1, 500])})
    group = ReplicaGroup(channel, process, Data(process))  # type: ignore[arg-type]

    def may_fail() -> None:
        if rng.random() < fails:
            raise TrainingError("The loss is not finite.")

    with group.leading():
        group.begin()
        for _ in range(rng.randint(1, 3)):
            group.changed()
            position = rng.randrange(BATCHES)
            while block := group.take(LONGEST_BLOCK, Cursor(batch=position), repeat=False):
                may_fail()
                group.train(block)
                if group.asked_to_stop or process.reason:
                    process.all.counts["asked to stop"] += 1
                    raise TrainingInterrupted("stopped", 143)
                if rng.random() < 0.2:
                    group.validate(process, lambda data: ({}, {}))  # type: ignore[arg-type]
                    group.changed()
                if rng.random() < 0.1:
                    world.sleep(rng.choice([0.1, 3]))  # a checkpoint
            group.close()
            if rng.random() < 0.1:
                group.retrace()


def worker(process: Process) -> int:
    channel = Channel(process)
    command, _, content = channel.receive()
    assert command is Command.SET_UP and len(content["names"]) in (1, 500)
    return Worker(Run(process), channel, process).run()  # type: ignore[arg-type]


def simulate(seed: int) -> Counter[str]:
    """One schedule; raises AssertionError if processes part company, train on different batches, or wait forever."""
    world = World(seed, longest=5000)
    rng = world.rng
    cluster = Cluster(world, rng.choice([2, 2, 3]))
    processes = [Process(cluster, index) for index in range(cluster.count)]
    fails = rng.choice([0, 0, 0.05])

    def run(process: Process) -> None:
        function: Callable[[], Any] = (lambda: chief(process, fails)) if process.chief else (lambda: worker(process))
        try:
            process.ending = function() or 0
        except WorkerLostError:
            process.ending = "lost"
        except TrainingInterrupted as interruption:
            process.ending = interruption.exit_status
        except TrainingError:
            process.ending = 1
        except Killed:
            process.ending = "killed"
            raise
        finally:
            cluster.silent.setdefault(process.index, world.now)

    tasks = [world.start(lambda one=process: run(one), f"process {process.index}") for process in processes]  # type: ignore[misc]

    def user() -> None:
        kind = rng.random()
        world.sleep(rng.uniform(0, 5))
        chosen = rng.randrange(cluster.count)
        if kind < 0.3 and not tasks[chosen].done:
            cluster.counts["deaths"] += 1
            cluster.silent[chosen] = world.now
            tasks[chosen].kill()
        elif kind < 0.6:
            processes[chosen].reason = "SIGTERM"
        elif kind < 0.8:
            processes[chosen].freezes = rng.uniform(1, 2 * HEARTBEAT)

    world.start(user, "user")
    world.run()
    endings = [process.ending for process in processes]
    cluster.counts.update(f"ended with {ending}" for ending in set(endings))
    if "lost" in endings:
        cluster.counts["lost"] += 1
    if not {"killed", "lost"} & set(endings):
        assert len(set(endings)) == 1, f"processes end with {endings}"
        assert all(process.steps == processes[0].steps for process in processes)
    else:  # the others notice it, unless all was said before
        assert len(set(endings) - {"killed", "lost"}) <= 1, f"processes end with {endings}"
    return cluster.counts
