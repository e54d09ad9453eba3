"""The bootstrap over samples and tests of pairs, against scipy."""

import math
from typing import Any

import keras
import numpy as np
import pytest
import scipy.stats

from scena.evaluation.statistics.bootstrap import mean_intervals, numbers, resamples, result_intervals
from scena.evaluation.statistics.paired import mcnemar, paired_bootstrap

RNG = np.random.default_rng(5)
SKEWED = RNG.exponential(size=120)


def test_intervals_of_means_are_those_of_scipy() -> None:
    expected = scipy.stats.bootstrap((SKEWED,), np.mean, n_resamples=20_000, method="percentile", rng=1)
    found = mean_intervals({"loss": SKEWED}, 20_000)["loss"]
    assert found.value == pytest.approx(SKEWED.mean())
    assert found.low == pytest.approx(expected.confidence_interval.low, abs=0.006)
    assert found.high == pytest.approx(expected.confidence_interval.high, abs=0.006)


def test_a_mean_gets_the_same_interval_as_a_result() -> None:
    def evaluate(chosen: Any) -> dict[str, Any]:
        return {"loss": SKEWED[chosen].mean(), "name": "text", "good": True}

    intervals, without = result_intervals(evaluate, len(SKEWED), 50, seed=3)
    assert intervals == {"loss": mean_intervals({"loss": SKEWED}, 50, seed=3)["loss"]} and not without


def test_a_result_that_some_resamples_do_not_have_gets_no_interval() -> None:
    rare = np.zeros(20, bool)
    rare[3] = True

    def evaluate(chosen: Any) -> dict[str, Any]:
        return {"recall of a rare class": 1.0 if rare[chosen].any() else math.nan, "share": float(rare[chosen].mean())}

    intervals, without = result_intervals(evaluate, 20, 60)
    assert list(intervals) == ["share"] and without == ["recall of a rare class"]


def test_numbers_of_any_library_are_numbers() -> None:
    given = {
        "float32": np.float32(0.5),
        "int64": np.int64(3),
        "0-d": np.array(0.25),
        "float": 1.0,
        "keras": keras.ops.sum([1.0, 2.0]),
    }
    others = {
        "yes": True,
        "no": np.bool_(False),
        "text": "1",
        "list": [1, 2],
        "array": np.ones(1),
        "none": None,
        "dict": {},
    }
    assert numbers({**given, **others}) == {"float32": 0.5, "int64": 3, "0-d": 0.25, "float": 1, "keras": 3}


def test_random_pairs_are_tested_as_by_scipy() -> None:
    rng = np.random.default_rng(6)
    for case in range(4):
        count = int(rng.integers(30, 120))
        first, second = rng.gamma(2, size=(2, count)) * 10.0 ** rng.integers(-4, 5) + rng.normal(0, 0.1 * (case % 3))
        found = paired_bootstrap(first, second, 1000, seed=case)
        expected = scipy.stats.bootstrap((first - second,), np.mean, n_resamples=1000, method="percentile", rng=case)
        width = found.difference.high - found.difference.low
        low, high = expected.confidence_interval
        assert (found.difference.low, found.difference.high) == pytest.approx((low, high), abs=0.12 * width)
        assert found.p == pytest.approx(scipy.stats.ttest_rel(first, second).pvalue, abs=0.05)


def test_a_resample_depends_on_seed_and_number_only() -> None:
    few, many = list(resamples(10, 3, seed=1)), list(resamples(10, 5, seed=1))
    assert all(np.array_equal(one, other) for one, other in zip(few, many, strict=False))
    assert not np.array_equal(few[0], next(resamples(10, 1, seed=2)))
    assert mean_intervals({}, 10) == {}


def test_pairs_find_a_difference_that_unpaired_samples_hide() -> None:
    second = RNG.normal(size=200) * 5
    first = second - 0.2 + RNG.normal(size=200) * 0.3
    found = paired_bootstrap(first, second, 2000)
    assert found.difference.high < 0 and found.p < 0.01
    assert found.effect == pytest.approx((first - second).mean() / (first - second).std(ddof=1))
    assert scipy.stats.ttest_ind(first, second).pvalue > 0.5
    assert found.p == pytest.approx(scipy.stats.ttest_rel(first, second).pvalue, abs=0.01)


def test_the_p_value_is_close_to_that_of_a_t_test_where_nothing_differs() -> None:
    first, second = RNG.normal(size=150), RNG.normal(size=150)
    found = paired_bootstrap(first, second, 4000)
    assert found.p == pytest.approx(scipy.stats.ttest_rel(first, second).pvalue, abs=0.04)
    same = paired_bootstrap(first, first, 100)
    assert (same.p, same.effect, same.difference.value) == (1, 0, 0)


@pytest.mark.parametrize(("only_first", "only_second"), [(0, 0), (1, 0), (5, 5), (9, 2), (40, 12), (1200, 1100)])
def test_mcnemar_is_the_binomial_test_of_the_samples_that_differ(only_first: int, only_second: int) -> None:
    first = np.array([True] * only_first + [False] * only_second + [True] * 3 + [False] * 2)
    second = np.array([False] * only_first + [True] * only_second + [True] * 3 + [False] * 2)
    found = mcnemar(first, second)
    assert (found.only_first, found.only_second) == (only_first, only_second)
    total = only_first + only_second
    if total:
        assert found.exact == pytest.approx(scipy.stats.binomtest(only_first, total).pvalue, rel=1e-9)
        point = scipy.stats.binom.pmf(min(only_first, only_second), total, 0.5)
        # Fagerland, Lydersen and Laake (2013): half of the probability of what was seen, on both sides
        lower = scipy.stats.binom.cdf(min(only_first, only_second), total, 0.5)
        expected = 2 * (lower - point / 2) if only_first != only_second else 1 - point
        assert found.mid == pytest.approx(expected, rel=1e-9)
    else:
        assert (found.exact, found.mid) == (1, 1)
    assert found.difference == pytest.approx(first.mean() - second.mean())


def test_pairs_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="Received: 3 and 2"):
        paired_bootstrap(np.zeros(3), np.zeros(2), 10)
    with pytest.raises(ValueError, match="same samples"):
        mcnemar(np.zeros(3), np.zeros(2))
