"""Plots of a search as PNG and HTML: history, importance, parallel coordinates, and the grid of two parameters."""

import warnings
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.errors import ExperimentError
from scena.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CELLS = 20
"""Values of a parameter up to which a grid of two is drawn."""


def write_plots(study: Any, folder: Path) -> list[Path]:
    """Writes the plots; returns the files."""
    try:
        import matplotlib
        import optuna.visualization as html
        import optuna.visualization.matplotlib as png
        import plotly  # noqa: F401  (Optuna needs it for the HTML files)
    except ImportError as error:
        raise ExperimentError(f"Plots need {error.name}: install scena[search].") from error
    matplotlib.use("Agg")
    complete = _complete(study)
    if not complete:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    wanted: list[tuple[str, Callable[[Any], Any]]] = [
        ("history", lambda module: module.plot_optimization_history(study)),
        ("parallel_coordinates", lambda module: module.plot_parallel_coordinate(study)),
    ]
    if _importances(study, complete):
        wanted.insert(1, ("importance", lambda module: module.plot_param_importances(study)))
    written: list[Path] = []
    # Optuna calls its plots with matplotlib experimental, and changes the style of every later plot of the process
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.simplefilter("ignore")
        for name, draw in wanted:
            _save_html(draw(html), folder / f"{name}.html")
            _save_png(draw(png), folder / f"{name}.png")
            written += [folder / f"{name}.png", folder / f"{name}.html"]
    axes = grid_axes(complete)
    if axes is not None:
        written += _draw_grid(study, complete, axes, folder)
    return written


def overview(study: Any) -> "Figure":
    """What `--plot` draws: the value of each trial with the best so far, and the importance of the parameters."""
    complete = _complete(study)
    weights = _importances(study, complete)
    figure = new_figure(11 if weights else 6, 4.5)
    history = figure.add_subplot(1, 2 if weights else 1, 1)
    better = max if study.direction.name == "MAXIMIZE" else min
    numbers, values = [trial.number for trial in complete], [trial.value for trial in complete]
    history.plot(numbers, values, "o", label="trials")
    history.step(numbers, list(accumulate(values, better)), where="post", label="best so far")
    history.set(xlabel="trial", ylabel="value")
    history.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    history.grid(alpha=0.3)
    history.legend()
    if weights:
        bars = figure.add_subplot(1, 2, 2)
        drawn = bars.barh(list(weights)[::-1], list(weights.values())[::-1])
        bars.bar_label(drawn, fmt="%.2f", padding=3)
        bars.set(xlabel="importance", xlim=(0, 1.1))
    return figure


def _complete(study: Any) -> list[Any]:
    return [trial for trial in study.trials if trial.state.name == "COMPLETE"]


def _importances(study: Any, complete: list[Any]) -> dict[str, float]:
    """How much each parameter that all trials have decides about the value, the most important first."""
    if len({repr(trial.value) for trial in complete}) < 2:
        return {}
    from optuna.importance import get_param_importances

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: dict[str, float] = get_param_importances(study)
    return found


def grid_axes(trials: list[Any]) -> tuple[str, str] | None:
    """The two parameters of the grid plot: depth and factor if they are searched, else the only two."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.params))
    depth = [name for name in names if name.rpartition(".")[2] == "depth"]
    factor = [name for name in names if name.rpartition(".")[2] == "factor"]
    pair = (depth[0], factor[0]) if depth and factor else tuple(names)
    if len(pair) != 2 or any(len({repr(trial.params.get(name)) for trial in trials}) > MOST_CELLS for name in pair):
        return None
    return pair[0], pair[1]


def grid_values(
    trials: list[Any], axes: tuple[str, str], best: Callable[..., float]
) -> tuple[list[Any], list[Any], list[list[float]]]:
    """The values of two parameters, and for each pair of them the best result (nan where there is none)."""
    down, across = (
        sorted({trial.params[name] for trial in trials if name in trial.params}, key=lambda v: (isinstance(v, str), v))
        for name in axes
    )
    found: dict[tuple[Any, Any], list[float]] = {}
    for trial in trials:
        if axes[0] in trial.params and axes[1] in trial.params:
            found.setdefault((trial.params[axes[0]], trial.params[axes[1]]), []).append(trial.value)
    nan = float("nan")
    return (
        down,
        across,
        [[best(found[row, column]) if (row, column) in found else nan for column in across] for row in down],
    )


def _draw_grid(study: Any, trials: list[Any], axes: tuple[str, str], folder: Path) -> list[Path]:
    import plotly.graph_objects as objects
    from matplotlib.figure import Figure

    best = max if study.direction.name == "MAXIMIZE" else min
    down, across, cells = grid_values(trials, axes, best)
    figure = Figure(figsize=(1.5 + len(across), 1.5 + 0.7 * len(down)), layout="constrained")
    plot = figure.subplots()
    image = plot.imshow(cells, aspect="auto", cmap="viridis")
    plot.set_xticks(range(len(across)), [str(value) for value in across])
    plot.set_yticks(range(len(down)), [str(value) for value in down])
    plot.set_xlabel(axes[1])
    plot.set_ylabel(axes[0])
    for row, line in enumerate(cells):
        for column, value in enumerate(line):
            if value == value:
                plot.text(
                    column, row, f"{value:.4g}", ha="center", va="center", color="white", backgroundcolor="#00000055"
                )
    figure.colorbar(image)
    figure.savefig(folder / "grid.png", dpi=120)
    shown = [["" if value != value else f"{value:.4g}" for value in line] for line in cells]
    heat = objects.Heatmap(
        z=cells,
        x=[str(value) for value in across],
        y=[str(value) for value in down],
        text=shown,
        texttemplate="%{text}",
        colorscale="Viridis",
    )
    page = objects.Figure(heat)
    page.update_layout(xaxis_title=axes[1], yaxis_title=axes[0], xaxis_type="category", yaxis_type="category")
    _save_html(page, folder / "grid.html")
    return [folder / "grid.png", folder / "grid.html"]


def _save_html(figure: Any, path: Path) -> None:
    figure.write_html(path, include_plotlyjs="directory")  # one copy of plotly.js beside them: no network is needed


def _save_png(axes: Any, path: Path) -> None:
    import matplotlib.pyplot as plt
    import numpy as np

    first = np.ravel(np.asarray(axes, dtype=object))[0]
    first.figure.set_size_inches(9, 5)
    first.figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(first.figure)
