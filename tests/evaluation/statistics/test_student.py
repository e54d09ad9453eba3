"""Means and intervals over a few results, against scipy."""

import math

import numpy as np
import pytest
import scipy.stats

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
