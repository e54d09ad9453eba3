"""A plot of the learning rate over a training."""

from pathlib import Path
from typing import Any

import numpy as np

from scena.plots import draw_curves
from scena.training.params import TrainerParams
from scena.training.prepare import create_schedule, epoch_steps

MOST_POINTS = 4000
UNKNOWN_LENGTH = 100


def draw_schedule(params: TrainerParams[Any, Any], data: Any, path: Path) -> str:
    """Writes the plot of a training's learning rate and returns a sentence that describes it; the data knows the steps of an epoch."""
    steps = epoch_steps(params, params.gen.train_data(data))
    known = steps is not None
    steps = steps if steps is not None else UNKNOWN_LENGTH
    schedule = create_schedule(params, steps)
    total = steps * params.epochs
    at = np.unique(np.linspace(0, total - 1, min(total, MOST_POINTS)).astype("int64"))
    epochs = (at / steps).tolist()
    rates = np.broadcast_to(np.asarray(schedule(at)), at.shape)
    momentum = schedule.momentum
    second = None if momentum is None else ("momentum", epochs, np.asarray(momentum(at)).tolist())
    name = type(params.learning_rate).__name__
    length = f"{steps} steps" if known else f"{UNKNOWN_LENGTH} steps (assumed: the source does not know)"
    draw_curves(
        path,
        [("learning rate", epochs, rates.tolist())],
        title=f"{name}: {params.epochs} epochs of {length}",
        labels=("epoch", "learning rate"),
        second=second,
    )
    return (
        f"{path}: {name} over {params.epochs} epochs of {length}, from {rates[0]:.3g} to {rates[-1]:.3g}, "
        f"highest {rates.max():.3g}"
    )
