"""The samples that a report shows: a gallery if they have images, else a table. Both can be sorted."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scena.evaluation.report.collect import Example
from scena.evaluation.report.plots import data_uri, image_png
from scena.pages.layout import Cell, card, escaped, table


def example_list(key: str, title: str, examples: Sequence[Example], names: list[str]) -> str:
    """The examples, in their order; `key` is the id of the gallery."""
    images = [_images(example) for example in examples]
    cells = [_cells(example, shown, names) for example, shown in zip(examples, images, strict=True)]
    if not any(images):
        head = list(dict.fromkeys(name for one in cells for name in one))
        rows = [[one.get(name, "–") for name in head] for one in cells]
        return card(title, table(head, rows, sortable=True, label=title))
    figures = "".join(_figure(shown, one) for shown, one in zip(images, cells, strict=True))
    orders = [("Confidence", "descending"), ("True", "ascending"), ("Predicted", "ascending")]
    buttons = "".join(
        f'<button type="button" data-key="{name.lower()}" data-order="{order}" aria-pressed="{str(not index).lower()}">{name}</button>'
        for index, (name, order) in enumerate(orders)
        if name in cells[0]
    )
    sorter = f'<span class="soft">Sort by</span><span data-sorts="{key}">{buttons}</span>' if buttons else ""
    return f'<div><div class="toolbar"><h3>{escaped(title)}</h3>{sorter}</div><div class="gallery" id="{key}">{figures}</div></div>'


def class_cell(number: int, names: list[str]) -> Cell:
    """A class by its name if that is known."""
    return Cell(names[number]) if number < len(names) else Cell(str(number), number)


def _images(example: Example) -> dict[str, bytes]:
    made = {name: image_png(np.asarray(value)) for name, value in example.inputs.items()}
    return {name: content for name, content in made.items() if content is not None}


def _cells(example: Example, images: dict[str, bytes], names: list[str]) -> dict[str, Cell]:
    """What is written about an example, by name."""
    found: dict[str, Cell] = {}
    if example.target is not None and example.predicted is not None:
        found["True"] = class_cell(example.target, names)
        found["Predicted"] = class_cell(example.predicted, names)
        if example.score is not None:
            found["Confidence"] = Cell(f"{example.score:.3f}", example.score, min(max(example.score, 0.0), 1.0))
    else:
        found |= _entries("target", example.targets) | _entries("output", example.outputs)
    found |= _entries("input", {name: value for name, value in example.inputs.items() if name not in images})
    return found | _entries("meta" if not isinstance(example.meta, dict) else "", example.meta)


def _entries(kind: str, values: Any) -> dict[str, Cell]:
    if values is None:
        return {}
    if not isinstance(values, dict):
        return {kind: _value(values)}
    return {f"{kind} {name}".strip(): _value(value) for name, value in values.items()}


def _figure(images: dict[str, bytes], cells: dict[str, Cell]) -> str:
    keys = "".join(
        f' data-{name.lower()}="{escaped(cells[name].text if cells[name].value is None else cells[name].value)}"'
        for name in ("True", "Predicted", "Confidence")
        if name in cells
    )
    shown = "".join(
        f'<span><img src="{data_uri(content)}" alt="{escaped(name)}">{escaped(name) if len(images) > 1 else ""}</span>'
        for name, content in images.items()
    )
    rows = "".join(f"<dt>{escaped(name)}</dt><dd{_bar(cell)}>{escaped(cell.text)}</dd>" for name, cell in cells.items())
    return f'<figure class="card"{keys}><div class="inputs">{shown}</div><dl>{rows}</dl></figure>'


def _bar(cell: Cell) -> str:
    return f' class="bar" style="--share:{cell.share:.3f}"' if cell.share is not None else ""


def _value(value: Any) -> Cell:
    if (
        isinstance(value, np.ndarray | np.generic | int | float)
        and np.ndim(value) == 0
        and np.asarray(value).dtype.kind in "biuf"
    ):
        return Cell(
            f"{np.asarray(value).item():.6g}" if np.asarray(value).dtype.kind == "f" else str(value), float(value)
        )
    return Cell(_short(value))


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_short(item)}" for name, item in value.items())
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"array of shape {value.shape}"
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "…"
