"""Plots as files: what `--plot FILE` of every command draws with."""

import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from scena.errors import ScenaError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL_DPI = 200
Curve = tuple[str, list[float], list[float]]
"""A label, the x and the y values."""
Band = tuple[str, list[float], list[float], list[float]]
"""The same, and half the width of a band around each y."""


class PlotError(ScenaError):
    """A plot cannot be drawn or written."""


def new_figure(width: float = 6, height: float = 4) -> "Figure":
    """An empty figure of matplotlib, without its global state or a screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotError("Plots need matplotlib: pip install 'scena[plot]'.") from error

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:  # a notebook shows figures of pyplot only
            image = io.BytesIO()
            self.savefig(image, format="png", metadata={"Software": None})
            return image.getvalue()

    return NotebookFigure(figsize=(width, height), layout="constrained")


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
    """Writes a plot of curves.

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
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    for label, x, y in curves:
        axes.plot(x, y, label=label, marker="." if len(x) == 1 else None)
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
    save_figures(path, {title: figure})


def draw_bands(path: Path, bands: list[Band], *, title: str, labels: tuple[str, str]) -> None:
    """Writes a plot of curves with a band around each; `labels` are those of the axes."""
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    for label, x, y, halves in bands:
        (line,) = axes.plot(x, y, label=label, marker="." if len(x) == 1 else None)
        low, high = ([a + sign * b for a, b in zip(y, halves, strict=True)] for sign in (-1, 1))
        axes.fill_between(x, low, high, alpha=0.2, color=line.get_color())
        if len(x) == 1:
            axes.errorbar(x, y, halves, color=line.get_color(), capsize=3)
    axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
    axes.grid(alpha=0.3)
    axes.legend()
    save_figures(path, {title: figure})


def save_figures(path: Path, figures: "Mapping[str, Figure]") -> None:
    """Writes figures, by title, into one file: a single one as it is, several side by side. Its suffix decides the format (png,
    svg, pdf).
    """
    check_suffix(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if len(figures) == 1:
            next(iter(figures.values())).savefig(path)
        else:
            _side_by_side(figures).savefig(path, dpi=PANEL_DPI)
    except (OSError, ValueError) as error:
        raise PlotError(f"Cannot write the plot {path}: {error}.") from error


def check_suffix(path: Path) -> None:
    """Raises PlotError if no plot can be written to a file of this name, or none at all."""
    if path.suffix.lower().removeprefix(".") not in new_figure().canvas.get_supported_filetypes():
        raise PlotError(f"The suffix of a plot's file decides its format, for example .png. Received: {path}.")


def _side_by_side(figures: "Mapping[str, Figure]") -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    columns = min(len(figures), 3)
    whole = new_figure(6 * columns, 6 * math.ceil(len(figures) / columns))
    for index, (title, figure) in enumerate(figures.items(), 1):
        figure.set_dpi(PANEL_DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        axes = whole.add_subplot(math.ceil(len(figures) / columns), columns, index)
        axes.imshow(canvas.buffer_rgba())
        axes.set_title(title.replace("$", r"\$"))  # which begins a formula
        axes.set_axis_off()
    return whole
