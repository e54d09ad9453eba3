"""The bootstrap over samples: how far results could move if other samples of the same kind had been drawn.

Intervals are percentile intervals of resamples with replacement (see decision 0100). They hold for the trained model as it is and say
nothing about another training.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from scena.evaluation.statistics.student import LEVEL, Interval

FEW_SAMPLES = 30
"""Below it, percentile intervals are noticeably too short."""
Values = np.ndarray[Any, Any]
Results = dict[str, Any]


def resamples(count: int, number: int, seed: int) -> Iterator[Values]:
    """Indices of `number` resamples of `count` samples; resample i depends on the seed and on i only."""
    for index in range(number):
        yield np.random.default_rng([seed, index]).integers(count, size=count)


def mean_intervals(values: Mapping[str, Values], number: int, seed: int = 0) -> dict[str, Interval]:
    """Intervals of means over samples, by name.

    Args:
        values: a value for each sample, by name; all of the same samples, so that one resample serves all.
        number: how many resamples to draw.
        seed: makes the draw repeatable.
    """
    if not values:
        return {}
    table = np.stack([np.asarray(column, np.float64) for column in values.values()])
    means = np.stack([table[:, chosen].mean(axis=1) for chosen in resamples(table.shape[1], number, seed)])
    return {
        name: _percentiles(float(column.mean()), means[:, index])
        for index, (name, column) in enumerate(zip(values, table, strict=True))
    }


def result_intervals(
    evaluate: Callable[[Values], Results],
    count: int,
    number: int,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[dict[str, Interval], list[str]]:
    """Intervals of any results that can be computed from some of the samples, and the names of numbers that have none because they
    were not finite in each resample.

    Args:
        evaluate: the results on the samples with these indices, some of which occur several times.
        count: how many samples there are.
        number: how many resamples to draw.
        seed: makes the draw repeatable.
        progress: called with 1 after each resample.
    """
    whole = numbers(evaluate(np.arange(count)))
    drawn: dict[str, list[float]] = {name: [] for name in whole}
    for chosen in resamples(count, number, seed):
        found = numbers(evaluate(chosen))
        for name in whole:
            drawn[name].append(found.get(name, math.nan))
        progress(1)
    good = [name for name, values in drawn.items() if math.isfinite(whole[name]) and np.isfinite(values).all()]
    intervals = {name: _percentiles(whole[name], np.array(drawn[name])) for name in good}
    return intervals, [name for name in whole if name not in good]


def numbers(results: Results) -> dict[str, float]:
    """The results that are numbers, those of numpy, Keras and other libraries too; yes and no are none."""
    return {name: float(value) for name, value in results.items() if is_number(value)}


def is_number(value: Any) -> bool:
    """Whether a result is a number."""
    if isinstance(value, bool | str | bytes | dict | list | tuple) or np.ndim(value):
        return False
    return np.asarray(value).dtype.kind in "iuf"


def _percentiles(value: float, drawn: Values) -> Interval:
    low, high = np.quantile(drawn, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return Interval(value, float(low), float(high))
