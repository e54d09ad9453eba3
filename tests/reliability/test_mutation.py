"""Mutants change what a function does, and nothing else; tests/reliability/mutation.py runs the tests on them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from scena.training.trigger import Trigger
from tests.reliability.mutants import functions_by_key, install, mutants_of
from tests.reliability.mutation import forked

PATH = Path("scena/training/trigger.py")


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])


def check_trigger() -> int:
    """A test of triggers that notices most changes of `due_at_step`."""
    due = [step for step in range(1, 13) if Trigger(4, "steps").due_at_step(step)]
    never = Trigger(0, "steps").due_at_step(4), Trigger(4).due_at_step(4), Trigger(1, "steps").due_at_step(1)
    return 0 if due == [4, 8, 12] and never == (False, False, True) else 1


@pytest.mark.long
def test_every_change_of_a_function_is_noticed() -> None:
    functions = functions_by_key([PATH])
    mutants = [mutant for mutant in mutants_of(PATH) if mutant.function[2] == "Trigger.due_at_step"]
    assert {mutant.what for mutant in mutants} >= {
        "returns None",
        "Eq becomes NotEq",
        "Mod becomes FloorDiv",
        "And becomes Or",
    }
    assert check_trigger() == 0

    def run_on(number: int) -> Callable[[Callable[[str], None]], int]:
        def run(write: Callable[[str], None]) -> int:
            install(mutants[number], functions[mutants[number].function])
            return check_trigger()

        return run

    survived = [mutants[number].what for number in range(len(mutants)) if forked(run_on(number), 5)[0] == 0]
    # whole numbers: nothing lies between 0 and 1
    assert survived == ["0 becomes 1"] or survived == [], survived
    assert check_trigger() == 0, "only copies of this process are changed"


@pytest.mark.long
def test_what_never_ends_is_ended() -> None:
    def spin(write: Callable[[str], None]) -> int:
        while True:
            pass

    assert forked(spin, 0.5)[0] < 0
    status, text, _ = forked(lambda write: write("found") or 3, 5)
    assert (status, text) == (3, "found")
    assert os.getpid() > 0
