"""The page itself: one HTML file with everything in it, and its plots beside it as PNG files."""

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scena.display import html_table
from scena.evaluation.evaluator import Evaluator
from scena.evaluation.report.collect import Collected, class_scores, confusions
from scena.evaluation.report.examples import class_cell, example_list
from scena.evaluation.report.plots import (
    MANY,
    confusion_figure,
    curve_figures,
    history_figure,
    png,
    scatter_figure,
    themed_svg,
)
from scena.model.tensorboard import plain_result
from scena.pages.layout import Cell, card, details, escaped, grid, plot, render_page, section, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFUSIONS = 10
"""How many of the most frequent confusions are listed."""


class Report:
    """Collects the parts of a report, and writes `index.html` and PNG files into a directory. `lead` is a sentence about the task;
    `facts` are shown at the top.
    """

    def __init__(self, directory: Path, title: str, lead: str = "", facts: Mapping[str, Any] | None = None) -> None:
        self.directory = directory
        self.title = title
        self.lead = lead
        self.facts = facts or {}
        self._sections: dict[str, tuple[str, str]] = {}
        self._files: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"Report({str(self.directory / 'index.html')!r}, sections: {', '.join(self._sections) or 'none'})"

    def _repr_html_(self) -> str:
        """A table for notebooks: the facts, and where the page is."""
        return html_table([*self.facts.items(), ("page", self.directory / "index.html")], title=self.title)

    def add_history(self, file: Path, run: str = "") -> None:
        """The curves of a training, if its `history.csv` is there; `run` is its name, where there are several."""
        history = read_history(file)
        groups: dict[str, list[str]] = {}
        for name in dict.fromkeys(name for row in history for name in row):
            if name not in ("epoch", "step", "time", "seconds"):
                groups.setdefault(re.sub(r"^(val|lav)_", "", name), []).append(name)
        if groups:
            if "learning_rate" in groups:  # the least interesting one comes last
                groups["learning_rate"] = groups.pop("learning_rate")
            plots = [
                self._plot(group, history_figure(history, names), f"training_{_file_name(run)}{group}")
                for group, names in groups.items()
            ]
            self._section(f"Training of {run}" if run else "Training", grid(plots))

    def add_model(self, name: str, collected: Collected, evaluator: Evaluator[Any]) -> None:
        """What one model did on one part of the data: matrix and curves where outputs are classes, the evaluator's plots, examples."""
        names, key = evaluator.class_names(), _file_name(name)
        boxes = []
        if collected.is_classes:
            matrix = collected.confusion()
            figure = confusion_figure(matrix, names)
            many = len(matrix) > MANY
            boxes.append(self._plot("Confusion matrix", figure, f"{key}confusion", wide=many))
            boxes.append(_class_table(matrix, names))
            boxes += [_confusion_table(matrix, names)] if many else []
        elif collected.numbers:
            boxes.append(self._plot("Predictions", scatter_figure(collected.numbers), f"{key}predictions"))
        if collected.scores:
            targets, scores = np.array(collected.targets), np.stack(collected.scores)
            for title, figure in curve_figures(targets, scores, names).items():
                boxes.append(self._plot(title, figure, f"{key}{_file_name(title)}".strip("_")))
        for title, figure in evaluator.plots().items():
            boxes.append(self._plot(title, figure, f"{key}{_file_name(title)}".strip("_")))
        parts = [f'<p class="soft">{collected.count:,} samples</p>', grid(boxes) if boxes else ""]
        examples = collected.errors if collected.is_classes else collected.first
        title = f"{len(examples)} most certain errors" if collected.is_classes else f"The first {len(examples)} samples"
        if examples:
            parts.append(example_list(f"examples-{len(self._sections)}", title, examples, names))
        else:
            parts.append(
                card("", '<p class="empty">There are no errors.</p>' if collected.is_classes else "No samples.")
            )
        self._section(name or "Model", f'<div class="stack">{"".join(parts)}</div>')

    def add_values(self, title: str, values: Mapping[str, Mapping[str, Any]]) -> None:
        """Parameters, versions and the like: a table with a column for each model, in which values that differ are marked."""
        columns = {name: dict(_flat(tree)) for name, tree in values.items()}
        names = list(dict.fromkeys(name for column in columns.values() for name in column))
        rows = [[name, *(column.get(name, "–") for column in columns.values())] for name in names]
        marked = [index for index, row in enumerate(rows) if len(set(row[1:])) > 1]
        text = title if len(columns) == 1 or not marked else f"{title} ({len(marked)} differ)"
        body = details(text, table(["", *columns], rows, marked=marked, label=title))
        self._section("Details", body)

    def write(self, results: dict[str, dict[str, Any]]) -> Path:
        """Writes the page, the results first, and its plots; returns the page."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, content in self._files.items():
            (self.directory / f"{name}.png").write_bytes(content)
        sections = {"results": ("Results", _results(results)), **self._sections}
        body = "\n".join(section(key, title, content) for key, (title, content) in sections.items())
        page = self.directory / "index.html"
        contents = {key: title for key, (title, _) in sections.items()}
        text = render_page(self.title, body, kind="Scena report", lead=self.lead, facts=self.facts, contents=contents)
        page.write_text(text, encoding="utf-8")
        return page

    def _section(self, title: str, body: str) -> None:
        """A new section, or more of one that is there."""
        key = next((key for key, (known, _) in self._sections.items() if known == title), f"part-{len(self._sections)}")
        self._sections[key] = (title, self._sections.get(key, ("", ""))[1] + body)

    def _plot(self, title: str, figure: "Figure", file: str, wide: bool = False) -> str:
        self._files[file] = png(figure)
        return plot(title, themed_svg(figure, file), wide=wide)


def read_history(file: Path) -> list[dict[str, float]]:
    """The rows of a `history.csv`, without what is not a number; none if there is no file."""
    if not file.is_file():
        return []
    rows = []
    with file.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines), 1):
            values = {name: float(value) for name, value in row.items() if name and _is_number(value)}
            rows.append({"epoch": float(number), **values})
    return rows


def _results(results: dict[str, dict[str, Any]]) -> str:
    """Tiles for one model, a table with a column for each of several."""
    if not any(results.values()):
        return card("", '<p class="empty">The scenario has no losses, metrics or results of an evaluator.</p>')
    if len(results) == 1:
        tiles = "".join(_tile(name, _number(value)) for name, value in next(iter(results.values())).items())
        return f'<dl class="tiles">{tiles}</dl>'
    names = list(dict.fromkeys(name for values in results.values() for name in values))
    rows: list[list[Cell | str]] = [
        [name, *(_result_cell(values.get(name)) for values in results.values())] for name in names
    ]
    return card("", table(["", *results], rows, label="Results"))


def _tile(name: str, text: str) -> str:
    small = " class=long" if len(text) > 12 else ""
    return f'<div class="card"><dt>{escaped(name)}</dt><dd{small}>{escaped(text)}</dd></div>'


def _result_cell(value: Any) -> Cell:
    shown = plain_result(value)
    return Cell(_number(value), float(shown) if isinstance(shown, int | float) else None)


def _class_table(matrix: np.ndarray, names: list[str]) -> str:
    scores = class_scores(matrix)
    rows = [
        [class_cell(number, names), *(_share(value) for value in one[:3]), Cell(f"{one.support:,}", one.support)]
        for number, one in enumerate(scores)
    ]
    means = [_share(_mean(one[index] for one in scores)) for index in range(3)]
    footer: list[Cell | str] = ["Mean", *means, Cell(f"{matrix.sum():,}", int(matrix.sum()))]
    head = ["Class", "Precision", "Recall", "F1", "Support"]
    return card("Classes", table(head, rows, sortable=True, footer=footer, label="Classes"))


def _confusion_table(matrix: np.ndarray, names: list[str]) -> str:
    rows = [
        [class_cell(target, names), class_cell(predicted, names), Cell(f"{count:,}", count), _share(count / max(matrix[target].sum(), 1))]
        for target, predicted, count in confusions(matrix, CONFUSIONS)
    ]  # fmt: skip
    head, title = ["True", "Predicted", "Samples", "Share of class"], "Most frequent confusions"
    return card(title, table(head, rows, sortable=True, label=title))


def _share(value: float | None) -> Cell:
    return Cell("–") if value is None else Cell(f"{value:.3f}", value, value)


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def _flat(value: Any, name: str = "") -> Iterable[tuple[str, str]]:
    """Nested values by their dotted names, as flags have them."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
        items = enumerate(value)
    else:
        yield name, _text(value)
    for key, item in items:
        yield from _flat(item, f"{name}.{key}" if name else str(key))


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_text, value)) or "[]"
    return str(value) if value not in (None, "") else "–"


def _number(value: Any) -> str:
    value = plain_result(value)
    return "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _file_name(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower() + "_" if name else ""
