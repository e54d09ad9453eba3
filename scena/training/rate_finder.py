"""Finding a learning rate: a short training whose rate grows from tiny to far too large (Smith 2017)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from scena.training.backends import check_backend
from scena.training.blocks import stacked
from scena.training.errors import TrainingError
from scena.training.pictures import draw_curves
from scena.training.preparing import prepare_run
from scena.training.rate_finder_params import RateFinderParams

DIVERGED = 4.0
"""Ends when the loss is this many times its best."""


@dataclass
class FoundRates:
    """What was tried and what came of it."""

    rates: list[float]
    losses: list[float]
    smoothed: list[float]
    suggestion: float

    def draw(self, path: Path) -> None:
        """Writes the picture."""
        draw_curves(
            path,
            [("loss", self.rates, self.losses), ("smoothed", self.rates, self.smoothed)],
            title=f"Learning-rate finder: {self.suggestion:.2g}",
            labels=("learning rate", "loss"),
            logarithmic=True,
            mark=self.suggestion,
        )


class _Range(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, lowest: float, highest: float, steps: int) -> None:
        self.lowest, self.growth = lowest, math.log(highest / lowest) / (steps - 1)

    def __call__(self, step: Any) -> Any:
        return ops.cast(self.lowest * ops.exp(self.growth * ops.cast(step, "float32")), "float32")


def find_rate(
    params: RateFinderParams, trainer_params: Any, scenario: Any, progress: Callable[[int], None] = lambda count: None
) -> FoundRates:
    """Trains for some batches and looks at the loss of each.

    Args:
        params: what to try.
        trainer_params: all parameters of the training; its schedule is not used.
        scenario: the scenario with these parameters.
        progress: called with 1 after each batch.
    """
    check_backend(trainer_params)
    if trainer_params.device.dist_strategy != "default":
        raise TrainingError(
            "A learning rate is looked for on one device; it is that of the whole batch, so it holds for several too. "
            f"Leave out --device.dist_strategy {trainer_params.device.dist_strategy}."
        )
    trainer_params.random_seed = trainer_params.random_seed or 0
    run = prepare_run(trainer_params, scenario, Path("."))
    schedule = _Range(params.lowest, params.highest, params.steps)
    run.model.optimizer.learning_rate = schedule
    rates: list[float] = []
    losses: list[float] = []
    smoothed: list[float] = []
    average = 0.0
    with run.train_data.stream(repeat=True) as stream:
        for step in range(params.steps):
            block = stream.take_block(1)
            run.model.reset_metrics()
            loss = run.engine.train(stacked(block, "inputs"), stacked(block, "targets"))[0]["loss"]
            if not math.isfinite(loss):
                break
            average = params.smoothing * average + (1 - params.smoothing) * loss
            rates.append(float(schedule(step)))
            losses.append(loss)
            smoothed.append(average / (1 - params.smoothing ** (step + 1)))
            progress(1)
            if smoothed[-1] > DIVERGED * min(smoothed):
                break
    return FoundRates(rates, losses, smoothed, suggest(rates, smoothed))


def suggest(rates: list[float], smoothed: list[float]) -> float:
    """The rate at which the smoothed loss falls fastest, before it is lowest."""
    lowest = int(np.argmin(smoothed)) if smoothed else 0
    if lowest < 2:
        raise TrainingError(
            f"No learning rate can be suggested: the loss never falls in {len(rates)} batches. "
            "Start lower (--lowest), or look at the data and the model."
        )
    slope = np.gradient(np.asarray(smoothed[: lowest + 1]), np.log(rates[: lowest + 1]))
    return rates[int(np.argmin(slope))]
