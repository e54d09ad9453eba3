"""Which learning rates to try, and for how long: all in short trainings first, then fewer in longer ones. Pure Python."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scena.errors import TrainingError

PER_DECADE = 2
"""Rates in a decade."""
REACH = 3
"""Rates to try on either side of the one to start from."""
LENGTHS = (1, 3, 9)
"""How long the trainings of each round are: the last round decides, since short trainings favour rates that are too large later on."""
KEPT = 4
"""Rates that reach the second round."""
LAST = 4
"""Rates of the last round, as a rule: the best one of the round before, its neighbours, and one more."""
VALIDATIONS = 4
"""In each training, at equal distances."""
SHORTEST = 10
"""Steps of the shortest training that shows anything; rounds that would be shorter are skipped."""
EQUAL = 0.15
"""Losses that differ by this share are equal: another seed, and what is left of the training, change them as much. The middle one of
these rates is suggested. The share is that of the lowest loss, or of what training has gained if that is less, as with a loss that has a
large constant part or is negative."""
PLATEAU = 2
"""Rates on either side of the best one that are asked whether they are equal: where all are, asking on would take twice the budget."""
NOTHING = 0.001
"""Losses that differ by this share of the loss before training are equal, too: between 1e-7 and 0 there is nothing to choose."""


@dataclass(frozen=True)
class Trial:
    """One training."""

    rate: float
    steps: int
    loss: float
    """The lowest one on the validation data; infinite if the training diverged."""


def rounds(budget: int) -> list[int]:
    """The steps of a training in each round, so that all trainings together have about `budget` steps."""
    counts = (2 * REACH + 1, KEPT, LAST)
    for first in range(len(LENGTHS)):
        whole = sum(count * length for count, length in zip(counts[first:], LENGTHS[first:], strict=True))
        if budget * LENGTHS[first] // whole >= SHORTEST:
            return [budget * length // whole for length in LENGTHS[first:]]
    raise TrainingError(
        f"The budget allows {budget} steps, too few to compare learning rates. Allow more: --budget {LAST * SHORTEST}steps at least."
    )


def validation_places(steps: int) -> list[int]:
    """The steps after which a training of this length validates."""
    return sorted({max(1, steps * number // VALIDATIONS) for number in range(1, VALIDATIONS + 1)})


def search(
    start: float,
    measure: Callable[[float, int], float],
    steps: list[int],
    untrained: float,
    lowest: float,
    highest: float,
) -> list[Trial]:
    """Tries rates around a first guess.

    Args:
        start: the guess.
        measure: gives the validation loss that a training reaches, from its rate and number of steps.
        steps: the steps of a training in each round.
        untrained: the validation loss before training.
        lowest: no rate below it is tried.
        highest: no rate above it is tried.

    Returns:
        All trials in their order; those of the last round have the most steps.
    """
    middle = round(math.log10(start) * PER_DECADE)
    trials: list[Trial] = []

    def allowed(place: int) -> bool:
        return lowest <= _rate(place) <= highest

    def loss(place: int, length: int) -> float:
        known = {trial.steps: trial.loss for trial in trials if trial.rate == _rate(place) and trial.steps <= length}
        if length not in known:
            reached = measure(_rate(place), length)
            # a longer training from the same weights with the same batches goes through what a shorter one reached
            reached = reached if math.isinf(reached) else min(reached, *known.values(), math.inf)
            trials.append(Trial(_rate(place), length, reached))
            return reached
        return known[length]

    reach = REACH if len(steps) == len(LENGTHS) else KEPT // 2
    places = [place for place in range(middle - reach, middle + reach + 1) if allowed(place)]
    if len(places) < 2:
        raise TrainingError(
            f"No learning rate can be suggested: there is hardly a rate to try between --lowest {lowest:g} and --highest {highest:g}."
        )
    for length, kept in zip(steps[:-1], (KEPT, 1)[3 - len(steps) :], strict=True):
        losses = {place: loss(place, length) for place in places}
        places = sorted(places, key=lambda place: (losses[place], abs(place - middle)))[:kept]
    best = places[0] if len(steps) > 1 else min(places, key=lambda place: abs(place - middle))
    while True:
        tried = [best]
        for direction in (1, -1):
            for place in range(best + direction, best + direction * (PLATEAU + 1), direction):
                if not allowed(place):
                    break
                tried.append(place)
                if not _equal(loss(place, steps[-1]), loss(best, steps[-1]), untrained):
                    break
        better = min(tried, key=lambda place: (loss(place, steps[-1]), abs(place - best)))
        if better == best:
            return trials
        best = better


def best_of(trials: list[Trial], untrained: float) -> float:
    """The rate to suggest: the middle of those that are as good as the best one, or the better one of the two in the middle.

    Raises:
        TrainingError: no training helped, or the best rate is the last one that was allowed.
    """
    longest = max(trial.steps for trial in trials)
    last = sorted((trial for trial in trials if trial.steps == longest), key=lambda trial: trial.rate)
    lowest = [trial for trial in last if trial.loss == min(trial.loss for trial in last)]
    best = min(lowest, key=lambda trial: abs(2 * last.index(trial) + 1 - len(last)))
    if not best.loss < untrained:
        raise TrainingError(
            f"No learning rate can be suggested: the validation loss is {untrained:.3g} before training, and {best.loss:.3g} at best "
            f"within {longest} steps. Allow more steps (--budget), or look at the data and the model."
        )
    if best is last[0] and best.loss < last[1].loss:
        raise TrainingError(
            f"No learning rate can be suggested: the lowest one that may be tried, {best.rate:.2g}, is the best. Start lower: --lowest."
        )
    if best is last[-1]:
        raise TrainingError(
            f"No learning rate can be suggested: the highest one that may be tried, {best.rate:.2g}, is the best. Raise --highest."
        )
    low = high = middle = last.index(best)
    while low > max(0, middle - PLATEAU) and _equal(last[low - 1].loss, best.loss, untrained):
        low -= 1
    while high < min(len(last) - 1, middle + PLATEAU) and _equal(last[high + 1].loss, best.loss, untrained):
        high += 1
    return min(last[(low + high) // 2], last[(low + high + 1) // 2], key=lambda trial: trial.loss).rate


def _equal(loss: float, best: float, untrained: float) -> bool:
    if not math.isfinite(untrained):
        return loss <= best + EQUAL * abs(best)
    return loss <= best + max(EQUAL * min(abs(best), untrained - best), NOTHING * abs(untrained))


def _rate(place: int) -> float:
    return float(10 ** (place / PER_DECADE))
