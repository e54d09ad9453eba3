"""Finding a learning rate: a short training whose rate grows from tiny to far too large (Smith 2017)."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from scena.backends.selection import check_backend
from scena.plots import draw_curves
from scena.training.errors import TrainingError
from scena.training.loop import stacked
from scena.training.prepare import prepare_run
from scena.training.schedules.params import RateFinderParams
from scena.training.schedules.rate_suggestion import places, smooth, suggest

DIVERGED = 4.0
"""Ends when the loss is this many times its first and its best value."""
RECENT = 5
"""Batches whose mean decides about that."""


@dataclass
class FoundRates:
    """What was tried and what came of it."""

    rates: list[float]
    losses: list[float]
    smoothed: list[float]
    suggestion: float | None
    refusal: str = ""
    """Why nothing can be suggested."""

    def draw(self, path: Path) -> None:
        """Writes the plot."""
        title = "no suggestion" if self.suggestion is None else f"{self.suggestion:.2g}"
        draw_curves(
            path,
            [("loss", self.rates, self.losses), ("smoothed", self.rates, self.smoothed)],
            title=f"Learning-rate finder: {title}",
            labels=("learning rate", "loss"),
            logarithmic=True,
            mark=self.suggestion,
            highest=2 * max(self.smoothed[: max(1, len(self.smoothed) // 4)]) if self.smoothed else None,
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
    check_backend(trainer_params, "trainer")
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
    recent: deque[float] = deque(maxlen=RECENT)
    best = math.inf
    with run.train_data.stream(repeat=True) as stream:
        for step in range(params.steps):
            block = stream.take_block(1)
            run.model.reset_metrics()
            loss = run.engine.train(stacked(block, "inputs"), stacked(block, "targets"))[0]["loss"]
            if not math.isfinite(loss):
                break
            rates.append(float(schedule(step)))
            losses.append(loss)
            recent.append(loss)
            progress(1)
            average = sum(recent) / len(recent)
            best = min(best, average)
            if average > max(DIVERGED * best, DIVERGED * losses[0]):
                break
    return judge(rates, losses, params.smoothing)


def judge(rates: list[float], losses: list[float], smoothing: float) -> FoundRates:
    """The suggestion, or why there is none."""
    smoothed = smooth(np.asarray(losses), places(rates, smoothing)).tolist() if len(rates) > 1 else losses
    try:
        return FoundRates(rates, losses, smoothed, suggest(rates, losses, smoothing))
    except TrainingError as error:
        return FoundRates(rates, losses, smoothed, None, str(error))
