"""The figures of a report. Drawn with matplotlib's objects, without its global state or a screen."""

import base64
import io
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from scena.display import one_line
from scena.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from scena.evaluation.evaluator import Evaluator
    from scena.evaluation.report.collect import Collected

MANY = 12
"""More classes than this: one curve over all classes."""
NUMBERED = 20
"""More classes than this: no numbers in the confusion matrix."""
LABELLED = 40
"""More classes than this: no names beside the confusion matrix."""
LONGEST = 20
"""Longer names of classes are cut in plots."""
LARGEST_SVG = 400_000
"""Larger figures (many points) become pixels inside their SVG."""

# matplotlib's own colors, by what the stylesheet of the pages calls them: a figure follows the theme of its page.
_THEMED = {
    "#000000": "currentColor", "#ffffff": "var(--card)", "#b0b0b0": "var(--line)", "#cccccc": "var(--line)", "#d3d3d3": "var(--line)",
    "#808080": "var(--soft)", "#1f77b4": "var(--plot-0)", "#ff7f0e": "var(--plot-1)", "#2ca02c": "var(--plot-2)",
    "#d62728": "var(--plot-3)", "#9467bd": "var(--plot-4)", "#8c564b": "var(--plot-5)", "#e377c2": "var(--plot-6)",
    "#7f7f7f": "var(--plot-7)", "#bcbd22": "var(--plot-8)", "#17becf": "var(--plot-9)",
}  # fmt: skip


def model_figures(collected: "Collected", evaluator: "Evaluator[Any]") -> "dict[str, Figure]":
    """What `--plot` draws of a model: the confusion matrix of classes, or predicted numbers over targets; and the evaluator's plots."""
    figures = {}
    if collected.is_classes:
        figures["Confusion matrix"] = confusion_figure(collected.confusion(), evaluator.class_names())
    elif collected.numbers:
        figures["Predictions"] = scatter_figure(collected.numbers)
    return {**figures, **evaluator.plots()}


def png(figure: "Figure") -> bytes:
    """A figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def themed_svg(figure: "Figure", name: str) -> str:
    """A figure as SVG inside a page: the page's theme replaces matplotlib's default colors. `name` makes the ids inside, so it
    differs from figure to figure.
    """
    text = _svg(figure, name)
    if len(text) > LARGEST_SVG:
        for axes in figure.axes:
            for artist in (*axes.lines, *axes.collections, *axes.patches):
                artist.set_rasterized(True)
        text = _svg(figure, name)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(
        r'(<svg [^>]*?)\swidth="[^"]*"', r"\1", re.sub(r'(<svg [^>]*?)\sheight="[^"]*"', r"\1", text, count=1), count=1
    )
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # the same in each figure
    return re.sub(r"(?<=: )#[0-9a-f]{6}\b", lambda color: _THEMED.get(color[0], color[0]), text)


def _svg(figure: "Figure", name: str) -> str:
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # the browser has other fonts
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()


def image_png(array: np.ndarray) -> bytes | None:
    """An input as a PNG file, if it looks like an image."""
    from PIL import Image

    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[-1] in (3, 4))) or min(array.shape[:2]) < 4:
        return None
    if array.dtype.kind not in "biuf":
        return None
    if array.dtype != np.uint8:
        array = array.astype("float64")
        low, high = float(array.min()), float(array.max())
        array = ((array - low) / ((high - low) or 1) * 255).astype("uint8")
    image = Image.fromarray(array)
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


def data_uri(content: bytes) -> str:
    """A PNG as it stands inside a page."""
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"


def history_figure(history: list[dict[str, float]], names: list[str]) -> "Figure":
    """The course of one value in training, validation and LAV."""
    figure = new_figure(4.8, 3.2)
    axes = figure.add_subplot()
    for name in names:
        points = [(row["epoch"], row[name]) for row in history if name in row]
        axes.plot(*zip(*points, strict=True), marker="." if len(points) < 40 else "", label=name)
    axes.set_xlabel("epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    if len(names) > 1:
        figure.legend(loc="outside upper left", ncols=min(len(names), 3), frameon=False)
    _plain(axes)
    return figure


def confusion_figure(matrix: np.ndarray, names: list[str]) -> "Figure":
    """Targets against predictions."""
    from matplotlib.colors import LinearSegmentedColormap

    size = len(matrix)
    side = 4.6 if size <= MANY else 7.5
    figure = new_figure(side * 1.05, side)
    axes = figure.add_subplot()
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    # Transparent where there is nothing, and never so strong that a number in it is hard to read on a light or on a dark page.
    colors = LinearSegmentedColormap.from_list("share", [(0.18, 0.45, 0.92, 0.0), (0.18, 0.45, 0.92, 0.6)])
    axes.imshow(share, cmap=colors, vmin=0, vmax=1, interpolation="none")
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    for spine in axes.spines.values():
        spine.set_color("#cccccc")
    axes.tick_params(length=0)
    if size <= LABELLED:
        labels = class_labels(names, size)
        small = 9 if size <= NUMBERED else 7
        axes.set_xticks(
            range(size), labels, rotation=90 if any(len(label) > 3 for label in labels) else 0, fontsize=small
        )
        axes.set_yticks(range(size), labels, fontsize=small)
    if size <= NUMBERED:
        for row, column in np.argwhere(matrix):
            axes.text(
                column, row, str(matrix[row, column]), ha="center", va="center", fontsize=9 if size <= MANY else 7
            )
    return figure


def scatter_figure(numbers: list[tuple[float, float]]) -> "Figure":
    """Predictions over targets; what is right lies on the diagonal."""
    figure = new_figure(4.8, 4.5)
    axes = figure.add_subplot()
    low, high = min(map(min, numbers)), max(map(max, numbers))
    axes.plot([low, high], [low, high], color="#808080", linewidth=1)
    axes.plot(*zip(*numbers, strict=True), ".", alpha=0.5)
    axes.set(xlabel="target", ylabel="predicted")
    _plain(axes)
    return figure


def curve_figures(targets: np.ndarray, scores: np.ndarray, names: list[str]) -> "dict[str, Figure]":
    """Precision over recall, and the receiver operating characteristic, one class against the rest; none if there is no rest."""
    count = scores.shape[1]
    if count == 2:
        groups: list[tuple[str, Any, Any]] = [("", targets == 1, scores[:, 1])]
    elif count <= MANY:
        labels = class_labels(names, count)
        groups = [(labels[label], targets == label, scores[:, label]) for label in range(count)]
    else:
        one_hot = np.eye(count, dtype=bool)[targets]
        groups = [("all classes", one_hot.ravel(), scores.ravel())]
    groups = [(name, truth, score) for name, truth, score in groups if truth.any() and not truth.all()]
    if not groups:
        return {}
    figures = {title: new_figure(4.8, 4.5) for title in ("Precision and recall", "Receiver operating characteristic")}
    precision, roc = (figure.add_subplot() for figure in figures.values())
    for index, (name, truth, score) in enumerate(groups):
        recall, precise, false_rate = curves(truth, score)
        style = "-" if index < 10 else "--"  # there are ten colors
        area = float(np.sum(np.diff(recall) * precise[1:]))
        precision.plot(recall, precise, style, label=f"{name} {area:.3f}".strip())
        area = float(np.trapezoid(recall, false_rate))
        roc.plot(false_rate, recall, style, label=f"{name} {area:.3f}".strip())
    for figure, x, y in zip(
        figures.values(), ("recall", "false positive rate"), ("precision", "true positive rate"), strict=True
    ):
        figure.axes[0].set(xlabel=x, ylabel=y, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        _plain(figure.axes[0])
        title = "Area under the curve"
        figure.legend(loc="outside lower center", title=title, title_fontsize=8, fontsize=8, ncols=2, frameon=False)
    return figures


def _plain(axes: "Axes") -> None:
    axes.grid(linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#cccccc")


def class_labels(names: list[str], count: int) -> list[str]:
    """What stands for each class in a plot; `$` begins a formula there, and a name is none."""
    if len(names) != count:
        return [str(number) for number in range(count)]
    lines = [one_line(name) for name in names]
    return [(line if len(line) <= LONGEST else line[: LONGEST - 1] + "…").replace("$", r"\$") for line in lines]


def curves(truth: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Recall, precision and false positive rate at each threshold, from the highest score down."""
    order = np.argsort(-score, kind="stable")
    truth, score = truth[order], score[order]
    last = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)  # equal scores share a threshold
    hits = np.cumsum(truth)[last]
    found = last + 1
    recall = np.append(0.0, hits / hits[-1])
    precision = np.append(1.0, hits / found)
    false_rate = np.append(0.0, (found - hits) / max(len(truth) - hits[-1], 1))
    return recall, precision, false_rate
