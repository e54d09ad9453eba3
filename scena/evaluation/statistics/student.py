"""The mean of a few results, such as those of several seeds, with Student's t interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

LEVEL = 0.95
"""The confidence of every interval that Scena prints."""
WITHOUT_WIDTH = (
    "An interval without width comes from equal values. It does not mean certainty: other runs and samples may differ."
)
FEW_FOLDS = 5
ROUGH = (
    f"With fewer than {FEW_FOLDS} folds, such an interval is rough: it rests on few values, and with two folds of 30 samples it contained "
    "the true value in 86 % of simulated cases, not in 95 %."
)


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def without_width(self) -> bool:
        """Whether all values were equal, which says nothing about how far others would lie from them."""
        return self.low == self.high

    def excludes(self, value: float) -> bool:
        """Whether a value lies outside."""
        return not self.low <= value <= self.high


@dataclass(frozen=True)
class Summary:
    """Mean and spread of the results of `n` independent runs."""

    n: int
    mean: float
    deviation: float | None
    """Sample standard deviation (ddof 1); None for a single run."""
    half_width: float | None
    """Of the 95 % interval of the mean; None for a single run."""

    @property
    def interval(self) -> Interval | None:
        """The mean with its 95 % interval."""
        if self.half_width is None:
            return None
        return Interval(self.mean, self.mean - self.half_width, self.mean + self.half_width)


def summarize(values: Sequence[float], variance_factor: float | None = None) -> Summary:
    """Mean, standard deviation and Student's t interval.

    Args:
        values: results of independent runs.
        variance_factor: the variance of the mean in units of the sample variance (default: 1/n). Folds share training samples, so
            their mean varies more than that: see `fold_variance_factor`.
    """
    n = len(values)
    if n == 0:
        raise ValueError("A summary needs at least one value. Received: none.")
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(1, mean, None, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    error = deviation * math.sqrt(1 / n if variance_factor is None else variance_factor)
    return Summary(n, mean, deviation, t_quantile(0.5 + LEVEL / 2, n - 1) * error)


def fold_variance_factor(results: int, test: float, train: float) -> float:
    """The factor of Nadeau and Bengio (2003) for `results` folds with these numbers of test and training samples."""
    return 1 / results + test / train


def difference(first: Sequence[float], second: Sequence[float]) -> Interval:
    """The difference of two means (first - second) with Welch's interval; each needs two values."""
    one, two = summarize(first), summarize(second)
    if one.deviation is None or two.deviation is None:
        raise ValueError(f"A difference of means needs two values on each side. Received: {one.n} and {two.n}.")
    parts = one.deviation**2 / one.n, two.deviation**2 / two.n
    error = math.sqrt(sum(parts))
    found = one.mean - two.mean
    if not error:  # equal values on each side: the spread is not known
        return Interval(found, found, found)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (one.n - 1) + parts[1] ** 2 / (two.n - 1))
    half = t_quantile(0.5 + LEVEL / 2, freedom) * error
    return Interval(found, found - half, found + half)


@cache
def t_quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t distribution, for probabilities from 0.5."""
    high = 1.0
    while t_below(high, freedom) < probability:
        high *= 2
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_below(middle, freedom) < probability else (low, middle)
    return high


def t_below(t: float, freedom: float) -> float:
    """The probability of a value below `t` ≥ 0 in Student's t distribution."""
    return 1 - _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x > (a + 1) / (a + b + 2):  # where the fraction of the mirrored function converges faster
        return 1 - _incomplete_beta(1 - x, b, a)
    if x <= 0:
        return 0.0
    scale = math.exp(
        a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - math.log(a)
    )
    fraction = 1.0
    for index in range(500, 0, -1):
        half = index // 2
        term = half * (b - half) if index % 2 == 0 else -(a + half) * (a + b + half)
        fraction = 1 + term * x / ((a + index - 1) * (a + index)) / fraction
    return scale / fraction
