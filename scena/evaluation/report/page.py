"""The page itself: one HTML file with everything in it, and its pictures beside it as PNG files."""

import csv
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from scena.evaluation.evaluator import Evaluator
from scena.evaluation.report.collect import Collected, Example
from scena.evaluation.report.plots import (
    confusion_figure,
    curve_figures,
    data_uri,
    history_figure,
    picture_png,
    png,
)
from scena.model.tensorboard_data import plain_result
from scena.terminal import visible

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid #8884; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { display: inline-block; margin: .5rem 1rem .5rem 0; vertical-align: top; } figcaption { font-size: .85rem; }
figure img { max-width: min(100%, 31rem); background: white; } img.input { min-width: 84px; image-rendering: pixelated; }
pre { overflow: auto; background: #8881; padding: .7rem; font-size: .8rem; } .grid figure { width: 8.5rem; }
"""


class Report:
    """Collects the parts of a report and writes it.

    Args:
        directory: where `index.html` and the PNG files go.
        title: the heading of the page.
    """

    def __init__(self, directory: Path, title: str) -> None:
        self.directory = directory
        self.title = title
        self._parts: list[str] = []
        self._files: dict[str, bytes] = {}

    def add_history(self, file: Path) -> None:
        """The curves of the training, from a run's `history.csv`, if it is there."""
        history = read_history(file)
        if not history:
            return
        groups: dict[str, list[str]] = {}
        for name in dict.fromkeys(name for row in history for name in row):
            if name not in ("epoch", "step", "time", "seconds"):
                groups.setdefault(re.sub(r"^(val|lav)_", "", name), []).append(name)
        self._parts.append("<h2>Training</h2>")
        for group, names in groups.items():
            self._figure(group, png(history_figure(history, names)), f"training_{group}")

    def add_model(self, name: str, collected: Collected, evaluator: Evaluator[Any]) -> None:
        """What one model did on one part of the data: matrix and curves where outputs are classes, the evaluator's plots, examples."""
        heading = html.escape(name or "Model")
        self._parts.append(f"<h2>{heading}</h2><p>{collected.count} samples</p>")
        names, key = evaluator.class_names(), _file_name(name)
        if collected.is_classes:
            self._figure("Confusion matrix", png(confusion_figure(collected.confusion(), names)), f"{key}confusion")
        if collected.scores:
            targets, scores = np.array(collected.targets), np.stack(collected.scores)
            for title, figure in curve_figures(targets, scores, names).items():
                self._figure(title, png(figure), f"{key}{_file_name(title)}".strip("_"))
        for title, figure in evaluator.plots().items():
            self._figure(title, png(figure), f"{key}{_file_name(title)}".strip("_"))
        examples = collected.errors if collected.is_classes else collected.first
        if examples:
            title = "Errors, the most certain ones first" if collected.is_classes else "Examples"
            shown = "".join(_example(example, names) for example in examples)
            self._parts.append(f'<h3>{title}</h3><div class="grid errors">{shown}</div>')
        elif collected.is_classes:
            self._parts.append("<p>There are no errors.</p>")

    def add_details(self, title: str, value: Any) -> None:
        """Parameters, versions and the like, as indented JSON."""
        text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False, default=str)
        self._parts.append(f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>")

    def write(self, results: dict[str, dict[str, Any]]) -> Path:
        """Writes the page, the table of results first, and its pictures; returns the page."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, content in self._files.items():
            (self.directory / f"{name}.png").write_bytes(content)
        title = html.escape(self.title)
        page = self.directory / "index.html"
        page.write_text(
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
            f"<body><h1>{title}</h1>\n{_table(results)}\n" + "\n".join(self._parts) + "\n</body></html>\n",
            encoding="utf-8",
        )
        return page

    def _figure(self, title: str, content: bytes, file: str) -> None:
        self._files[file] = content
        caption = html.escape(title)
        self._parts.append(
            f'<figure><img src="{data_uri(content)}" alt="{caption}"><figcaption>{caption}</figcaption></figure>'
        )


def _table(results: dict[str, dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for values in results.values() for name in values))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in results)
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td>"
        + "".join(f'<td class="number">{_number(values.get(name))}</td>' for values in results.values())
        + "</tr>"
        for name in names
    )
    return f"<h2>Results</h2><table><tr><th></th>{head}</tr>{rows}</table>"


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


def _example(example: Example, names: list[str]) -> str:
    pictures = {name: picture_png(np.asarray(value)) for name, value in example.inputs.items()}
    shown = "".join(
        f'<img class="input" src="{data_uri(content)}" alt="{html.escape(name)}" title="{html.escape(name)}">'
        for name, content in pictures.items()
        if content is not None
    )
    if example.target is not None and example.predicted is not None:
        text = f"{_class(example.predicted, names)} instead of {_class(example.target, names)}"
        if example.score is not None:
            text += f" (p = {example.score:.2f})"
    else:
        text = (
            f"{_short(example.outputs)}; target {_short(example.targets)}"
            if example.targets
            else _short(example.outputs)
        )
    others = {name: value for name, value in example.inputs.items() if pictures[name] is None}
    if others:
        text += f"; inputs {_short(others)}"
    if example.meta is not None:
        text += f"; {_short(example.meta)}"
    return f"<figure>{shown}<figcaption>{html.escape(visible(text))}</figcaption></figure>"


def _class(number: int, names: list[str]) -> str:
    return names[number] if number < len(names) else str(number)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_short(item)}" for name, item in value.items())
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"array of shape {value.shape}"
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _number(value: Any) -> str:
    value = plain_result(value)
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else html.escape(str(value))


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _file_name(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower() + "_" if name else ""
