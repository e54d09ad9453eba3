"""From the losses of a learning-rate finder to a suggestion, or to the reason why there is none. Pure numpy."""

import math

import numpy as np

from scena.errors import TrainingError

REACHED = 3 / 4
"""The suggested rate is the one at which this share of the fall is done: where the loss still falls fast, and well below the rate at which
it rises again. It hardly depends on where exactly noise puts the lowest point."""
RISE = 0.25
"""A rise by this share of the fall ends it: what comes after is another story."""
SKIPPED = 0.05
"""Share of the batches at the start that is not looked at: the first losses of a network are often unusual."""
FLAT = 0.25
"""Share of the batches at the start that shows the loss before it falls, and its noise."""
SIGNIFICANT = 6.0
"""A fall counts from this many standard deviations of the smoothed loss on."""


class NoisyLossError(TrainingError):
    """No fall of the loss stands out from its noise."""


def suggest(rates: list[float], losses: list[float], smoothing: float, tests: int = 1) -> float:
    """The rate at which three quarters of the first real fall of the loss are done.

    Args:
        rates: the rates in growing order, at equal ratios.
        losses: the loss of the batch that was trained at each of them.
        smoothing: width of the smoothing, in decades of the rate.
        tests: how many range tests the losses are means of.

    Raises:
        NoisyLossError: the fall does not stand out from the noise.
        TrainingError: it begins or ends outside of the range.
    """
    count = len(rates)
    if not count:
        raise TrainingError(
            "No learning rate can be suggested: the loss of the first batch is not a finite number. Look at the data and the model."
        )
    if count < 10:
        raise TrainingError(
            f"No learning rate can be suggested: the loss is not a finite number after {count} batches. Start lower (--lowest), or look at "
            "the data and the model."
        )
    skipped = round(SKIPPED * count)
    width = places(rates, smoothing)
    curve = smooth(np.asarray(losses[skipped:]), width)
    flat = max(4, round(FLAT * count) - skipped)
    level = float(np.median(curve[:flat]))
    noise = _noise(np.asarray(losses[skipped:]) - curve, flat, width)
    lowest = _first_valley(curve, level, noise)
    fall = level - float(curve[lowest])
    if fall <= SIGNIFICANT * noise:
        times = f"{tests} × " if tests > 1 else ""
        raise NoisyLossError(
            f"No learning rate can be suggested: within {times}{count} batches the loss falls by {max(fall, 0):.3g} at most, and its "
            f"noise is {noise:.3g}. Try more batches (--steps), a larger batch (--train.batch_size), or look at the data and the model."
        )
    if curve[0] - curve[flat - 1] > REACHED * fall:
        raise TrainingError(
            f"No learning rate can be suggested: the loss falls already at {rates[skipped]:.2g}, where the search starts. "
            "Start lower: --lowest."
        )
    if lowest >= len(curve) - 1 - max(1, width / 2):
        raise TrainingError(
            f"No learning rate can be suggested: the loss still falls at {rates[-1]:.2g}, where the search ends. Raise --highest."
        )
    reached = int(np.argmax(curve[: lowest + 1] <= level - REACHED * fall))
    return rates[skipped + reached]


def places(rates: list[float], decades: float) -> float:
    """How many batches cover this many decades of the rate."""
    return decades * (len(rates) - 1) / math.log10(rates[-1] / rates[0])


def smooth(losses: np.ndarray, width: float) -> np.ndarray:
    """Averages with Gaussian weights around each place, so that the curve does not lag behind the rate.

    Args:
        losses: the values; a few at each end are averaged over fewer neighbours.
        width: the standard deviation, in places; 0 changes nothing.
    """
    if width <= 0:
        return losses.astype("float64")
    reach = max(1, math.ceil(3 * width))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    # a single loss that explodes must not lift those before it
    capped = np.minimum(losses, 10 * np.median(np.abs(losses)) + np.abs(losses[0]))
    present = np.convolve(np.ones(len(losses)), weights)[reach : reach + len(losses)]
    return np.convolve(capped, weights)[reach : reach + len(losses)] / present


def _noise(residuals: np.ndarray, flat: int, width: float) -> float:
    """The standard deviation that noise leaves in the smoothed loss, from the part before the fall."""
    spread = float(np.median(np.abs(residuals[:flat]))) * 1.4826
    return spread / math.sqrt(max(1.0, 2 * math.sqrt(math.pi) * width))


def _first_valley(curve: np.ndarray, level: float, noise: float) -> int:
    """The lowest place before the loss first rises by a good part of what it has fallen, if that is more than noise."""
    lowest = 0
    for place, value in enumerate(curve):
        if value < curve[lowest]:
            lowest = place
        fall = level - curve[lowest]
        if fall > SIGNIFICANT * noise and value - curve[lowest] > max(RISE * fall, SIGNIFICANT * noise):
            break
    return lowest
