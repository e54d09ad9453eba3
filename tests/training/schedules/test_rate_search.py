"""Which rates are tried for how long, and which one is suggested: losses as functions of rate and steps."""

import math
from typing import Any

import numpy as np
import pytest

from scena.errors import TrainingError
from scena.training.schedules.rate_search import Trial, best_of, rounds, search

LOWEST, HIGHEST = 1e-7, 10.0


def valley(best: float, *, drift: float = 0.0, diverges: float = math.inf) -> Any:
    """A loss that is lowest at `best` after 100 steps, and `drift` decades lower after ten times as many."""

    def measure(rate: float, steps: int) -> float:
        middle = math.log10(best) - drift * math.log10(steps / 100)
        return math.inf if rate >= diverges else (1 + (math.log10(rate) - middle) ** 2) * 10 / math.sqrt(steps)

    return measure


def found(measure: Any, start: float = 1e-3, budget: int = 5000, untrained: float = 5.0) -> float:
    return best_of(search(start, measure, rounds(budget), untrained, LOWEST, HIGHEST), untrained)


@pytest.mark.parametrize("start", [1e-4, 1e-3, 2e-2])
def test_the_best_rate_is_found_from_a_guess_that_is_off(start: float) -> None:
    assert found(valley(1e-3), start) == pytest.approx(1e-3)


def test_the_walk_goes_beyond_the_first_candidates() -> None:
    assert found(valley(1e-1), start=1e-4) == pytest.approx(0.1)
    assert found(valley(1e-6), start=1e-3) == pytest.approx(1e-6)


def test_longer_trainings_decide() -> None:
    """The best rate falls from 0.0036 in the first round to 0.0012 in the last."""
    trials = search(1e-2, valley(1e-2, drift=0.5), rounds(50_000), 5.0, LOWEST, HIGHEST)
    first = min((trial for trial in trials if trial.steps == trials[0].steps), key=lambda trial: trial.loss)
    assert first.rate == pytest.approx(10**-2.5)
    assert best_of(trials, 5.0) == pytest.approx(1e-3)


def test_of_equal_losses_the_middle_is_taken() -> None:
    assert found(lambda rate, steps: 1.0 if 9e-4 < rate < 0.02 else 5.0, untrained=9.0) == pytest.approx(10**-2.5)


def test_a_wide_plateau_does_not_take_much_more_than_the_budget() -> None:
    trials = search(1e-3, lambda rate, steps: 1.0, rounds(5000), 9.0, LOWEST, HIGHEST)
    assert sum(trial.steps for trial in trials) < 1.2 * 5000
    assert best_of(trials, 9.0) == pytest.approx(1e-3)


def test_a_better_rate_at_the_end_of_a_plateau_is_followed() -> None:
    """0.01 is a decade above 0.001, which wins the short rounds: the last one to be tried, but no edge of what may be tried."""
    losses = {-3.5: 1.2, -3.0: 1.0, -2.5: 1.04, -2.0: 0.98, -1.5: 1.02, -1.0: 1.5}
    lengths = rounds(5000)

    def measure(rate: float, steps: int) -> float:
        place = round(2 * math.log10(rate)) / 2
        return losses.get(place, 5.0) if steps == lengths[-1] else 2 + abs(place + 3)

    assert best_of(search(1e-3, measure, lengths, 9.0, LOWEST, HIGHEST), 9.0) == pytest.approx(0.01)


def test_losses_near_zero_are_equal() -> None:
    """At 0.1 nothing is left of the loss, but hardly more from a decade below it to 0.3; of the two in the middle, 0.1 is better."""
    losses = {-1.5: 2e-6, -1.0: 0.0, -0.5: 3e-4, -2.0: 4e-6, -2.5: 5e-4, -3.0: 0.02}
    assert found(
        lambda rate, steps: losses.get(round(2 * math.log10(rate)) / 2, 0.7), 0.03, untrained=0.7
    ) == pytest.approx(0.1)


@pytest.mark.parametrize("shift", [0.0, 100.0, -100.0])
def test_a_constant_part_of_the_loss_does_not_matter(shift: float) -> None:
    """Around a valley that is 1 deep, all losses are within a tenth of 100."""
    measure = valley(1e-3)
    assert found(lambda rate, steps: measure(rate, steps) + shift, untrained=5.0 + shift) == pytest.approx(1e-3)


def test_the_budget_holds_and_most_of_it_goes_to_the_last_round() -> None:
    for budget in (500, 5000, 100_000):
        trials = search(1e-3, valley(1e-3), rounds(budget), 5.0, LOWEST, HIGHEST)
        steps = np.array([trial.steps for trial in trials])
        assert 0.7 * budget < steps.sum() <= 1.05 * budget
        assert steps[steps == steps.max()].sum() > steps.sum() / 2


def test_slow_steps_get_fewer_rounds() -> None:
    assert [len(rounds(budget)) for budget in (1000, 300, 50)] == [3, 2, 1]
    assert found(valley(1e-3), start=3e-3, budget=50) == pytest.approx(1e-3)
    with pytest.raises(TrainingError, match=r"The budget allows 20 steps, too few .* --budget 40steps at least"):
        rounds(20)


def test_rates_that_diverge_do_not_win() -> None:
    assert found(valley(1e-1, diverges=0.05), start=1e-2) == pytest.approx(10**-1.5)


def test_nothing_is_suggested_at_an_edge_or_without_an_improvement() -> None:
    with pytest.raises(TrainingError, match=r"the highest one that may be tried, 10, is the best. Raise --highest"):
        found(valley(1e3), start=1.0)
    with pytest.raises(TrainingError, match=r"the lowest one that may be tried, 1e-07, is the best. Start lower"):
        found(valley(1e-9), start=1e-6)
    with pytest.raises(TrainingError, match=r"the validation loss is 0.01 before training, and .* at best within"):
        found(valley(1e-3), untrained=0.01)
    with pytest.raises(TrainingError, match="inf at best"):
        best_of([Trial(1e-3, 10, math.inf)], 1.0)
    with pytest.raises(TrainingError, match=r"hardly a rate to try between --lowest 0.0015 and --highest 0.0025"):
        search(2e-3, valley(1e-3), [10], 1.0, 1.5e-3, 2.5e-3)
