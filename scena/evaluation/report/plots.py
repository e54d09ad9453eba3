"""The figures of a report. Drawn with matplotlib's objects, without its global state or a screen."""

import base64
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from scena.plots import new_figure
from scena.terminal import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = 12
"""More classes than this: no numbers in the matrix, and one curve over all classes."""


def png(figure: "Figure") -> bytes:
    """A figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def picture_png(array: np.ndarray) -> bytes | None:
    """An input as a PNG file, if it looks like a picture."""
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
    figure = new_figure(5, 3.2)
    axes = figure.add_subplot()
    for name in names:
        points = [(row["epoch"], row[name]) for row in history if name in row]
        axes.plot(*zip(*points, strict=True), marker="." if len(points) < 40 else "", label=name)
    axes.set_xlabel("epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    axes.legend()
    axes.grid(alpha=0.3)
    return figure


def confusion_figure(matrix: np.ndarray, names: list[str]) -> "Figure":
    """Targets against predictions."""
    size = len(matrix)
    figure = new_figure(*(2 * [min(10.0, max(4.0, 0.5 * size + 1))]))
    axes = figure.add_subplot()
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set_xlabel("predicted")
    axes.set_ylabel("target")
    if size <= MANY:
        labels = class_labels(names, size)
        axes.set_xticks(range(size), labels, rotation=45 if any(len(label) > 3 for label in labels) else 0)
        axes.set_yticks(range(size), labels)
        for row, column in np.ndindex(size, size):
            if matrix[row, column]:
                dark = share[row, column] > 0.5
                axes.text(
                    column,
                    row,
                    str(matrix[row, column]),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if dark else "black",
                )
    return figure


def curve_figures(targets: np.ndarray, scores: np.ndarray, names: list[str]) -> "dict[str, Figure]":
    """Precision over recall, and the receiver operating characteristic, one class against the rest."""
    count = scores.shape[1]
    figures = {"Precision and recall": new_figure(5, 4), "Receiver operating characteristic": new_figure(5, 4)}
    precision, roc = (figure.add_subplot() for figure in figures.values())
    if count == 2:
        groups: list[tuple[str, Any, Any]] = [("", targets == 1, scores[:, 1])]
    elif count <= MANY:
        labels = class_labels(names, count)
        groups = [(labels[label], targets == label, scores[:, label]) for label in range(count)]
    else:
        one_hot = np.eye(count, dtype=bool)[targets]
        groups = [("all classes", one_hot.ravel(), scores.ravel())]
    for name, truth, score in groups:
        if not truth.any() or truth.all():
            continue
        recall, precise, false_rate = curves(truth, score)
        area = float(np.sum(np.diff(recall) * precise[1:]))
        precision.plot(recall, precise, label=f"{name} (area {area:.3f})".strip())
        area = float(np.trapezoid(recall, false_rate))
        roc.plot(false_rate, recall, label=f"{name} (area {area:.3f})".strip())
    for axes, x, y in ((precision, "recall", "precision"), (roc, "false positive rate", "true positive rate")):
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    return figures


def class_labels(names: list[str], count: int) -> list[str]:
    """What stands for each class in a plot; `$` begins a formula there, and a name is none."""
    if len(names) != count:
        return [str(number) for number in range(count)]
    return [one_line(name).replace("$", r"\$") for name in names]


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
