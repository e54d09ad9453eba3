"""Two models on the same samples: the paired bootstrap for means, McNemar's test for right and wrong answers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scena.evaluation.statistics.bootstrap import mean_intervals, numbers, resamples, result_intervals
from scena.evaluation.statistics.student import Interval

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class PairedTest:
    """The difference of two means over the same samples (first - second)."""

    n: int
    first: float
    second: float
    difference: Interval
    p: float
    """Two-sided p value of the paired bootstrap, centered at the null hypothesis."""
    effect: float
    """Cohen's d of the differences: their mean in units of their standard deviation; NaN where single samples have no value."""


def paired_bootstrap(first: Values, second: Values, number: int, seed: int = 0) -> PairedTest:
    """Tests whether two means over the same samples differ.

    Args:
        first: a value for each sample.
        second: the values of the other model on the same samples, in the same order.
        number: how many resamples to draw.
        seed: makes the draw repeatable.
    """
    if len(first) != len(second) or not len(first):
        raise ValueError(f"Pairs need the same samples on both sides. Received: {len(first)} and {len(second)}.")
    differences = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    interval = mean_intervals({"": differences}, number, seed)[""]
    centered = differences - differences.mean()
    tolerance = 1e-12 * float(np.abs(differences).max())
    extreme = sum(
        abs(float(centered[chosen].mean())) >= abs(interval.value) - tolerance
        for chosen in resamples(len(centered), number, seed)
    )
    deviation = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    effect = (
        interval.value / deviation if deviation else math.copysign(math.inf, interval.value) if interval.value else 0.0
    )
    p = (extreme + 1) / (number + 1)
    return PairedTest(len(differences), float(np.mean(first)), float(np.mean(second)), interval, p, effect)


def paired_results(
    first: Callable[[Values], dict[str, Any]],
    second: Callable[[Values], dict[str, Any]],
    count: int,
    number: int,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[dict[str, PairedTest], list[str]]:
    """Tests results that are not means over samples, such as those of an evaluator; they have no effect size.

    The second part of the answer names results that were not tested, because they are not finite in each resample.

    Args:
        first: the results of one model on the samples with these indices.
        second: those of the other model.
        count: how many samples there are.
        number: how many resamples to draw.
        progress: called with 1 after each resample.
    """
    drawn: dict[str, list[float]] = {}

    def both(chosen: Values) -> dict[str, Any]:
        found = numbers(first(chosen)), numbers(second(chosen))
        apart = {name: value - found[1][name] for name, value in found[0].items() if name in found[1]}
        for name, value in apart.items():
            drawn.setdefault(name, []).append(value)
        return apart

    intervals, without = result_intervals(both, count, number, progress=progress)
    whole = numbers(first(np.arange(count))), numbers(second(np.arange(count)))
    tests = {}
    for name, interval in intervals.items():
        values = np.array(drawn[name][1:])  # the first is that of all samples
        beyond = min(int((values <= 0).sum()), int((values >= 0).sum()))
        p = min(1.0, 2 * (beyond + 1) / (number + 1))
        tests[name] = PairedTest(count, whole[0][name], whole[1][name], interval, p, math.nan)
    return tests, without


@dataclass(frozen=True)
class McNemar:
    """Samples that exactly one of two models answers right, and whether that is more than chance."""

    n: int
    only_first: int
    only_second: int
    exact: float
    """Two-sided p value of the exact test, which is conservative."""
    mid: float
    """Two-sided mid-p value."""

    @property
    def difference(self) -> float:
        """The difference of the shares of right answers (first - second)."""
        return (self.only_first - self.only_second) / self.n

    @property
    def odds_ratio(self) -> float:
        """How many samples only the first answers right for each that only the second does."""
        if not self.only_second:
            return math.inf if self.only_first else math.nan
        return self.only_first / self.only_second


def mcnemar(first: Values, second: Values) -> McNemar:
    """McNemar's test of two arrays that say which samples were answered right."""
    first, second = np.asarray(first, bool), np.asarray(second, bool)
    if len(first) != len(second) or not len(first):
        raise ValueError(f"Pairs need the same samples on both sides. Received: {len(first)} and {len(second)}.")
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    total, less = only_first + only_second, min(only_first, only_second)
    exact = min(1.0, 2 * math.fsum(_binomial(k, total) for k in range(less + 1)))
    # of an even split, every outcome is as extreme, and half of its own probability counts
    mid = 1 - _binomial(less, total) if only_first == only_second else exact - _binomial(less, total)
    return McNemar(len(first), only_first, only_second, exact, 1.0 if total == 0 else mid)


def _binomial(k: int, total: int) -> float:
    """The probability of k heads in `total` throws of a fair coin."""
    return math.exp(math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) - total * math.log(2))
