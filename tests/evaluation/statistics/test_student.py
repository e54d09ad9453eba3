"""Means and intervals over a few results, against scipy."""

import math

import numpy as np
import pytest
import scipy.stats

from scena.data.folds import assign_folds
from scena.evaluation.statistics.student import difference, fold_variance_factor, summarize, t_below, t_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 30, 250, 2000, 3.7, 12.34])
def test_the_t_distribution_is_that_of_scipy(freedom: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=1e-11)
    for t in (0.0, 0.3, 2.0, 30.0):
        assert t_below(t, freedom) == pytest.approx(scipy.stats.t.cdf(t, freedom), rel=1e-12)


def test_a_summary_has_sample_deviation_and_t_interval() -> None:
    values = [0.91, 0.93, 0.90, 0.95, 0.92]
    found = summarize(values)
    low, high = scipy.stats.t.interval(0.95, 4, np.mean(values), scipy.stats.sem(values))
    assert (found.n, found.mean) == (5, pytest.approx(np.mean(values)))
    assert found.deviation == pytest.approx(np.std(values, ddof=1))
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (pytest.approx(low), pytest.approx(high))
    assert found.interval.excludes(0.8) and not found.interval.excludes(0.92)


def test_one_value_has_no_spread_and_equal_values_have_none() -> None:
    assert summarize([3.0]).interval is None and summarize([3.0]).deviation is None
    assert summarize([3.0, 3.0]).half_width == 0
    equal = summarize([3.0, 3.0]).interval
    assert equal is not None and equal.without_width
    with pytest.raises(ValueError, match="at least one value"):
        summarize([])


def test_folds_widen_the_interval_by_the_share_of_test_samples() -> None:
    values = [0.9, 0.8, 0.85, 0.95, 0.7]
    wider = summarize(values, fold_variance_factor(5, 20, 80)).half_width
    plain = summarize(values).half_width
    assert plain is not None
    assert wider == pytest.approx(plain * math.sqrt((1 / 5 + 20 / 80) / (1 / 5)))


def test_the_difference_of_two_means_is_that_of_welch() -> None:
    first, second = [1.0, 1.3, 0.9, 1.2], [0.2, 0.8, 0.5]
    expected = scipy.stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    found = difference(first, second)
    assert found.value == pytest.approx(np.mean(first) - np.mean(second))
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert difference([1.0, 1.0], [0.0, 0.0]).low == 1
    with pytest.raises(ValueError, match="Received: 1 and 3"):
        difference([1.0], second)


def test_random_summaries_and_differences_are_those_of_scipy() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        first, second = (
            rng.normal(rng.normal(), 10 ** rng.uniform(-6, 6), rng.integers(2, 9)).tolist() for _ in range(2)
        )
        found = summarize(first).interval
        expected = scipy.stats.t.interval(0.95, len(first) - 1, np.mean(first), scipy.stats.sem(first))
        assert found is not None and (found.low, found.high) == pytest.approx(expected, rel=1e-9)
        apart = difference(first, second)
        welch = scipy.stats.ttest_ind(first, second, equal_var=False)
        expected = welch.confidence_interval(0.95)
        assert (apart.low, apart.high) == pytest.approx((expected.low, expected.high), rel=1e-7)
        assert apart.excludes(0) == (welch.pvalue < 0.05)


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20])
def test_intervals_over_seeds_hold_the_mean_as_often_as_they_promise(n: int) -> None:
    draws = np.random.default_rng(n).normal(1.5, 2.0, size=(8000, n)).tolist()
    found = [summarize(values).interval for values in draws]
    share = np.mean([interval is not None and not interval.excludes(1.5) for interval in found])
    assert abs(share - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 8000)


def test_intervals_over_folds_hold_the_error_of_such_trainings_where_plain_ones_do_not() -> None:
    """Nearest centroids of two clouds; repeated, since there the plain interval is much too short."""
    rng = np.random.default_rng(2)
    count, folds, repeats, times = 60, 5, 3, 150

    def clouds(number: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, 2, number)
        return rng.normal(size=(number, 4)) + 0.6 * y[:, None], y

    def error(train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray]) -> float:
        x, y = train
        far = [((test[0] - x[y == label].mean(axis=0)) ** 2).sum(axis=1) for label in (0, 1)]
        return float(np.mean((far[0] > far[1]) != test[1]))

    many = clouds(5000)
    true = np.mean([error(clouds(count - count // folds), many) for _ in range(200)])
    held = {"corrected": 0, "plain": 0}
    for number in range(times):
        x, y = clouds(count)
        values = []
        for repeat in range(repeats):
            assigned = assign_folds(count, folds, [number, repeat], y.tolist())
            tested = [assigned == fold for fold in range(folds)]
            values += [error((x[~one], y[~one]), (x[one], y[one])) for one in tested]
        test = count / folds
        factors = {"corrected": fold_variance_factor(len(values), test, count - test), "plain": None}
        for name, factor in factors.items():
            interval = summarize(values, factor).interval
            held[name] += interval is not None and not interval.excludes(float(true))
    assert held["corrected"] / times >= 0.93 and held["plain"] / times < 0.8
