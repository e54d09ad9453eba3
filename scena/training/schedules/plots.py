"""Plots of learning rates: the schedule of a training, and the losses of a learning-rate finder."""

from pathlib import Path
from typing import Any

import numpy as np

from scena.training.errors import TrainingError
from scena.training.params import TrainerParams
from scena.training.prepare import create_schedule, epoch_steps

MOST_POINTS = 4000
UNKNOWN_LENGTH = 100


def draw_schedule(params: TrainerParams[Any, Any], data: Any, path: Path) -> str:
    """Writes the picture and returns a sentence that says what it shows.

    Args:
        params: all parameters of the training.
        data: the scenario's data, which knows how many steps an epoch has.
        path: the file to write.
    """
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
    length = f"{steps} steps" if known else f"taken as {UNKNOWN_LENGTH} steps, because the data does not say"
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


Curve = tuple[str, list[float], list[float]]
"""A label, the x and the y values."""


def draw_curves(
    path: Path,
    curves: list[Curve],
    *,
    title: str,
    labels: tuple[str, str],
    second: Curve | None = None,
    logarithmic: bool = False,
    mark: float | None = None,
    highest: float | None = None,
) -> None:
    """Writes a picture with curves.

    Args:
        path: the file; its suffix decides the format (png, svg, pdf).
        curves: what to draw.
        title: what stands above.
        labels: of the two axes.
        second: one more curve with an axis of its own on the right.
        logarithmic: whether the x axis is logarithmic.
        mark: an x value to mark.
        highest: where the y axis ends, if curves go further.
    """
    if not path.suffix:  # matplotlib would write another file, with a suffix
        raise TrainingError(f"The name of the picture says its format, for example .png. Received: {path}.")
    figure_cls, canvas_cls = _matplotlib()
    figure = figure_cls(figsize=(8, 4.5), layout="constrained")
    canvas_cls(figure)
    axes = figure.add_subplot()
    for label, x, y in curves:
        axes.plot(x, y, label=label)
    axes.set(title=title, xlabel=labels[0], ylabel=labels[1], xscale="log" if logarithmic else "linear")
    axes.grid(alpha=0.3)
    if highest is not None and axes.get_ylim()[1] > highest:
        axes.set_ylim(top=highest)
    if second is not None:
        right = axes.twinx()
        right.plot(second[1], second[2], color="tab:orange", label=second[0])
        right.set_ylabel(second[0])
    if mark is not None:
        axes.axvline(mark, color="tab:red", linestyle="--", label=f"{mark:.3g}")
    if len(curves) > 1 or mark is not None:
        axes.legend()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise TrainingError(f"Cannot write the picture {path}: {error}.") from error


def _matplotlib() -> tuple[Any, Any]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TrainingError("Pictures need matplotlib: install Scena with its extra 'plot'.") from error
    return Figure, FigureCanvasAgg
