"""Error rates of verification against their definitions, and against curves that are known."""

import numpy as np
import pytest

from scena.errors import ModelError
from scena.model.metric_learning import error_rates, pair_scores
from scena.model.metric_learning import verification as module


def test_all_pairs_are_scored_once() -> None:
    rng = np.random.default_rng(0)
    embeddings, labels = rng.normal(size=(12, 4)), rng.integers(0, 3, 12)
    genuine, impostors = pair_scores(embeddings, labels)
    expected: dict[bool, list[float]] = {True: [], False: []}
    for i in range(12):
        for j in range(i + 1, 12):
            a, b = embeddings[i], embeddings[j]
            expected[bool(labels[i] == labels[j])].append(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    np.testing.assert_allclose(np.sort(genuine), np.sort(expected[True]), atol=1e-6)
    np.testing.assert_allclose(np.sort(impostors), np.sort(expected[False]), atol=1e-6)


def test_blocks_make_no_difference_and_impostors_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    embeddings, labels = rng.normal(size=(200, 4)), rng.integers(0, 20, 200)
    whole = pair_scores(embeddings, labels)
    monkeypatch.setattr(module, "BLOCK", 7)
    for one, other in zip(whole, pair_scores(embeddings, labels), strict=True):
        np.testing.assert_allclose(np.sort(one), np.sort(other), atol=1e-6)
    genuine, impostors = pair_scores(embeddings, labels, most_impostors=1000)
    assert len(genuine) == len(whole[0]) and 850 < len(impostors) < 1150
    assert error_rates(genuine, impostors).eer == pytest.approx(error_rates(*whole).eer, abs=0.03)


def test_rates_are_counted_at_each_threshold() -> None:
    genuine, impostors = np.array([0.9, 0.8, 0.4, 0.6]), np.array([0.1, 0.4, 0.5, 0.2, 0.7])
    rates = error_rates(genuine, impostors)
    for threshold, far, frr in zip(*rates, strict=True):
        assert far == pytest.approx(np.mean(impostors >= threshold))
        assert frr == pytest.approx(np.mean(genuine < threshold))
    assert (rates.far[0], rates.frr[0], rates.far[-1], rates.frr[-1]) == (1, 0, 0, 1)
    assert np.all(np.diff(rates.far) <= 0) and np.all(np.diff(rates.frr) >= 0)


def test_the_equal_error_rate_of_two_normal_curves_is_known() -> None:
    """Two normal curves, two apart: they meet in the middle, where one in 6.3 is on the wrong side (Φ(−1))."""
    rng = np.random.default_rng(1)
    rates = error_rates(rng.normal(2, 1, 40_000), rng.normal(0, 1, 60_000))
    assert rates.eer == pytest.approx(0.1587, abs=0.004)
    assert rates.eer_threshold == pytest.approx(1, abs=0.03)
    assert rates.tar_at(0.01) == pytest.approx(0.372, abs=0.01)  # 1 − Φ(2.326 − 2)
    assert rates.tar_at(0.1) == pytest.approx(0.764, abs=0.01)


@pytest.mark.parametrize(
    ("genuine", "impostors", "eer"),
    [
        ([0.9, 0.8], [0.1, 0.2], 0.0),  # a threshold parts them
        ([0.1, 0.2], [0.8, 0.9], 1.0),  # all the wrong way round
        ([0.5, 0.5], [0.5, 0.5], 0.5),  # nothing to tell them apart by
        ([0.9, 0.3], [0.1, 0.5], 0.5),
    ],
)
def test_equal_error_rates_by_hand(genuine: list[float], impostors: list[float], eer: float) -> None:
    assert error_rates(np.array(genuine), np.array(impostors)).eer == pytest.approx(eer)


def test_accepting_is_counted_at_no_more_than_the_given_false_accepts() -> None:
    rates = error_rates(np.array([0.9, 0.8, 0.6, 0.2]), np.linspace(0, 0.7, 8))
    assert rates.tar_at(0.0) == 0.5
    assert rates.tar_at(0.125) == 0.5  # the impostor of 0.7 goes in, no genuine pair with it
    assert rates.tar_at(0.25) == 0.75
    assert rates.tar_at(1.0) == 1.0


def test_what_cannot_be_measured_is_said() -> None:
    with pytest.raises(ModelError, match="Received: 3 samples of 3 classes"):
        pair_scores(np.eye(3), np.arange(3))
    with pytest.raises(ModelError, match="Received: 3 samples of 1 classes"):
        pair_scores(np.eye(3), np.zeros(3))
    with pytest.raises(ModelError, match="Received: 3 embeddings, 2 labels"):
        pair_scores(np.eye(3), np.zeros(2))
    with pytest.raises(ModelError, match="Received: 0 genuine, 2 impostors"):
        error_rates(np.array([]), np.array([1.0, 2.0]))
    with pytest.raises(ModelError, match="need finite scores"):
        error_rates(np.array([np.nan]), np.array([1.0, 2.0]))
