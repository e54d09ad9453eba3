"""When an interval is due."""

import pytest

from scena.training.trigger import Trigger


def test_every_other_epoch() -> None:
    every = Trigger.from_param("2epochs")
    assert [every.due_at_epoch(epoch) for epoch in (1, 2, 3, 4)] == [False, True, False, True]


def test_every_third_step() -> None:
    every = Trigger.from_param("3steps")
    assert [every.due_at_step(step) for step in (1, 2, 3, 4, 6)] == [False, False, True, False, True]
    assert [every.steps_until_due(step) for step in (0, 1, 2, 3, 7)] == [3, 2, 1, 3, 2]


def test_every_second() -> None:
    every = Trigger.from_param("1s")
    assert [every.due_after(seconds) for seconds in (0.0, 0.9, 1.0, 5.0)] == [False, False, True, True]


@pytest.mark.parametrize("interval", ["2epochs", "3steps", "1s"])
def test_an_interval_is_due_in_its_own_unit_only(interval: str) -> None:
    every = Trigger.from_param(interval)
    assert every
    due = {"epochs": every.due_at_epoch(6), "steps": every.due_at_step(6), "seconds": every.due_after(6)}
    assert due == {unit: unit == every.unit for unit in due}
    assert (every.steps_until_due(6) is None) == (every.unit != "steps")


@pytest.mark.parametrize("never", ["0", "0steps", "0s"])
def test_nothing_is_due_at_an_interval_of_zero(never: str) -> None:
    every = Trigger.from_param(never)
    assert not every
    assert not every.due_at_epoch(1) and not every.due_at_step(1) and not every.due_after(1e9)
    assert every.steps_until_due(1) is None
