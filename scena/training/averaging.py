"""Training with a moving average of the weights (EMA): which rate, and validating with the average instead of the weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras

from scena.training.errors import TrainingError
from scena.training.optimizers.extensions import MovingAverage
from scena.training.optimizers.params import GradientOptimizerParams, Lookahead
from scena.training.params import TrainerParams

AUTOMATIC = -1.0
SHARE = 0.1
"""The automatic average remembers about this share of all updates: the last tenth."""
SLOWEST = 0.9999


def create_average(params: TrainerParams[Any, Any], steps_per_epoch: int | None) -> MovingAverage | None:
    """The moving average that the parameters ask for, or None."""
    if params.ema_decay == 0:
        return None
    if params.ema_decay != AUTOMATIC:
        return MovingAverage(params.ema_decay)
    if steps_per_epoch is None:
        raise TrainingError(
            "--trainer.ema_decay -1 is computed from the number of steps, which this source does not tell. "
            "Give a rate, for example 0.99, or --trainer.samples_per_epoch."
        )
    inner = params.optimizer.inner if isinstance(params.optimizer, Lookahead) else params.optimizer
    accumulated = inner.gradient_accumulation_steps if isinstance(inner, GradientOptimizerParams) else 1
    return MovingAverage(automatic_decay(steps_per_epoch * params.epochs // accumulated), ramp=True)


def automatic_decay(updates: int) -> float:
    """The rate whose average remembers about a tenth of all updates of the weights."""
    return min(1 - 1 / max(SHARE * updates, 1.0), SLOWEST)


@contextmanager
def averaged_weights(model: keras.Model, average: MovingAverage | None) -> Iterator[None]:
    """While the block runs, the model has the average as its weights; afterwards exactly its own again."""
    if average is None:
        yield
        return
    pairs = [
        (variable, value)
        for variable, value in zip(model.trainable_variables, average.averages, strict=True)
        if value is not None
    ]
    own = [(variable, keras.ops.convert_to_numpy(variable.value)) for variable, _ in pairs]
    for variable, value in pairs:
        variable.assign(value)
    try:
        yield
    finally:
        for variable, before in own:
            variable.assign(before)
