"""Which rate is read from a curve of losses, and when there is none: curves as trainings make them, with noise."""

from collections.abc import Callable

import numpy as np
import pytest

from scena.errors import TrainingError
from scena.training.schedules.rate_suggestion import smooth, suggest

RATES = np.geomspace(1e-7, 10, 200)


def losses(level: Callable[[np.ndarray], np.ndarray], noise: float, seed: int) -> list[float]:
    values: np.ndarray = level(RATES) + noise * np.random.default_rng(seed).standard_normal(len(RATES))
    return values.tolist()


def fall(rates: np.ndarray, middle: float = 1e-3, end: float = 0.1, depth: float = 1.5) -> np.ndarray:
    """2.3 at first, lower by `depth` around and beyond `middle`, and exploding beyond `end`."""
    low: np.ndarray = 2.3 - depth / (1 + (middle / rates) ** 2) + (rates / end) ** 3
    return low


def suggested(values: list[float], smoothing: float = 0.2) -> float:
    return suggest(RATES[: len(values)].tolist(), values, smoothing)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.2])
def test_the_rate_lies_where_the_loss_falls(noise: float, seed: int) -> None:
    assert 4e-4 < suggested(losses(fall, noise, seed)) < 6e-3  # the loss falls around 1e-3, and explodes from 0.1 on


def test_flat_noise_is_refused() -> None:
    refused = 0
    for seed in range(200):
        try:
            suggested(losses(np.ones_like, 0.1, seed))
        except TrainingError as error:
            refused += 1
            assert "No learning rate can be suggested: within 200 batches the loss falls by" in str(error)
            assert "Try more batches (--steps), a larger batch (--train.batch_size)" in str(error)
    assert refused >= 199


def test_a_rise_without_a_fall_is_refused() -> None:
    with pytest.raises(TrainingError, match="and its noise is"):
        suggested(losses(lambda rates: 1 + rates, 0.05, 1))


def test_unusual_losses_at_the_start_do_not_count() -> None:
    values = losses(fall, 0.02, 1)
    expected = suggested(values)
    values[:4] = [9.0, 5.0, 0.1, 0.2]
    assert suggested(values) == pytest.approx(expected, rel=0.1)


def test_a_second_lower_valley_beyond_a_rise_does_not_count() -> None:
    def two(rates: np.ndarray) -> np.ndarray:
        bump = np.exp(-(np.log10(rates / 0.05) ** 2) / 0.05)
        late = -0.2 * np.exp(-(np.log10(rates / 1.0) ** 2) / 0.02)
        result: np.ndarray = 2.3 - 1.5 / (1 + (1e-3 / rates) ** 2) + bump + late
        return result

    assert 4e-4 < suggested(losses(two, 0.02, 1)) < 4e-3


def test_a_fall_at_the_edges_is_refused() -> None:
    with pytest.raises(TrainingError, match=r"the loss still falls at 10, where the search ends. Raise --highest"):
        suggested(losses(lambda rates: fall(rates, middle=5.0, end=1e9), 0.01, 1))
    with pytest.raises(
        TrainingError, match=r"the loss falls already at .*, where the search starts. Start lower: --lowest"
    ):
        suggested(losses(lambda rates: fall(rates, middle=4e-7), 0.01, 1))


def test_too_few_losses_are_refused() -> None:
    with pytest.raises(TrainingError, match=r"the loss is not a finite number after 3 batches. Start lower"):
        suggested([1.0, 2.0, 3.0])


def test_smoothing_does_not_lag_and_one_explosion_does_not_spread() -> None:
    step = np.where(np.arange(100) < 50, 1.0, 0.0)
    smoothed = smooth(step, 5)
    assert smoothed[49] > 0.5 > smoothed[50] and smoothed[0] == pytest.approx(1)
    exploding = np.ones(100)
    exploding[-1] = 1e12
    assert smooth(exploding, 5).max() < 12
    assert smooth(step, 0).tolist() == step.tolist()
