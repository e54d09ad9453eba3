"""A few simulated schedules: `python -m tests.reliability.simulation` has the long campaign."""

from collections import Counter

import pytest

from tests.reliability.simulation import experiments, replicas, searching, serving
from tests.reliability.simulation.world import StuckError, World


def test_runs_are_never_run_twice_nor_lost() -> None:
    counts = sum((experiments.simulate(seed) for seed in range(100)), Counter[str]())
    assert min(counts[key] for key in ("deaths", "stopped", "two drivers")) > 5


def test_trials_are_never_run_twice_nor_lost() -> None:
    counts = sum((searching.simulate(seed) for seed in range(60)), Counter[str]())
    assert min(counts[key] for key in ("deaths", "stopped", "two drivers", "complete", "fail")) > 5


def test_every_client_gets_its_answer() -> None:
    counts = sum((serving.simulate(seed) for seed in range(200)), Counter[str]())
    assert min(counts[key] for key in ("answered", "gave up", "closed", "refused")) > 20


def test_processes_of_a_training_never_part() -> None:
    counts = sum((replicas.simulate(seed) for seed in range(400)), Counter[str]())
    assert min(counts[key] for key in ("deaths", "lost", "asked to stop", "ended with 0", "ended with 1")) > 10


def test_a_world_notices_what_waits_forever() -> None:
    world = World(0)
    world.start(lambda: world.wait(lambda: False), "one")
    with pytest.raises(StuckError, match="waits forever at 0.0: one"):
        world.run()
