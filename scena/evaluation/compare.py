"""Two sides, each a model or several runs of one training, on the same samples."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scena.evaluation.evaluator import Evaluator
from scena.evaluation.per_sample import SampleResults, StatisticsError, evaluate
from scena.evaluation.report.collect import right_answers
from scena.evaluation.statistics.bootstrap import numbers
from scena.evaluation.statistics.claims import Comparison
from scena.evaluation.statistics.paired import McNemar, mcnemar, paired_bootstrap, paired_results
from scena.evaluation.statistics.student import Interval, difference


@dataclass
class Side:
    """A model, or the runs of a group."""

    title: str
    members: list[SampleResults]


def check_same_samples(first: Side, second: Side) -> None:
    """Raises StatisticsError unless all members have seen the same samples in the same order."""
    expected = first.members[0].digests()
    for side in (first, second):
        for member in side.members:
            found = member.digests()
            if found == expected:
                continue
            if len(found) != len(expected):
                what = f"{len(expected)} samples on one side, {len(found)} on the other"
            elif Counter(found) == Counter(expected):
                what = "the same samples, but in another order"
            else:
                number = next(i for i, (one, other) in enumerate(zip(found, expected, strict=True)) if one != other)
                what = f"sample {number} has another target or meta"
            raise StatisticsError(
                f"{first.title} and {second.title} were not measured on the same samples: {what}. Only pairs can be compared; measure both "
                "on the same data, in the same order."
            )
    if not expected:
        raise StatisticsError("There are no samples to compare the models on.")


def check_same_classes(*class_names: list[str]) -> None:
    """Raises StatisticsError if two models have different names for the class of the same number; one may have more classes."""
    named = [names for names in class_names if names]
    for names in named:
        for number, (one, other) in enumerate(zip(named[0], names, strict=False)):
            if one != other:
                raise StatisticsError(
                    f"The models number their classes differently: {number} is {one!r} for one and {other!r} for another. Their answers "
                    "cannot be paired: train them with the same list of classes."
                )


def compare(
    first: Side,
    second: Side,
    evaluator: Evaluator[Any],
    number: int,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[dict[str, Comparison], McNemar | None, list[str]]:
    """The differences of all results that both sides have (A - B), and McNemar's test if the sides are single models with classes.

    The last part of the answer names results that were not tested, because they are not finite for each sample or resample.

    Args:
        first: A.
        second: B.
        evaluator: runs on resampled samples of each run.
        number: how many resamples to draw.
        progress: called with 1 after each resample of the evaluator.
    """
    check_same_samples(first, second)
    found: dict[str, Comparison] = {}
    without: list[str] = []
    members = [*first.members, *second.members]
    for name in [name for name in members[0].values if all(name in member.values for member in members)]:
        if not all(np.isfinite(member.values[name]).all() for member in members):
            without.append(name)
            continue
        one, two = (np.mean([member.values[name] for member in side.members], axis=0) for side in (first, second))
        found[name] = Comparison(name, paired_bootstrap(one, two, number), _over_seeds(first, second, name))
    count = len(members[0].samples)
    if evaluate(evaluator, members[0].samples, range(count)):
        sides = [_evaluating(side, evaluator) for side in (first, second)]
        tests, not_finite = paired_results(sides[0], sides[1], count, number, progress)
        without += not_finite
        whole = [[evaluate(evaluator, one.samples, range(count)) for one in side.members] for side in (first, second)]
        for name, test in tests.items():
            values = [[float(result[name]) for result in results] for results in whole]
            found[name] = Comparison(name, test, difference(*values) if min(map(len, values)) > 1 else None)
    answers = None
    if len(members) == 2:
        rights = [right_answers(member.samples) for member in members]
        answers = mcnemar(rights[0], rights[1]) if rights[0] is not None and rights[1] is not None else None
    return found, answers, without


def _over_seeds(first: Side, second: Side, name: str) -> Interval | None:
    means = [[float(member.values[name].mean()) for member in side.members] for side in (first, second)]
    return difference(*means) if min(map(len, means)) > 1 else None


def _evaluating(side: Side, evaluator: Evaluator[Any]) -> Callable[[Any], dict[str, Any]]:
    """The mean of the evaluator's numbers over the runs of a side."""

    def means(chosen: Any) -> dict[str, Any]:
        results = [numbers(evaluate(evaluator, member.samples, chosen)) for member in side.members]
        # a run may lack a result on some samples, such as that of a class which it never predicts
        return {name: float(np.mean([result.get(name, math.nan) for result in results])) for name in results[0]}

    return means
