"""Files of predictions: JSON lines for any outputs, CSV for one row of single values per sample."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from scena.data.sample import Sample
from scena.errors import ScenaError
from scena.prediction.class_names import named_classes, with_class_names
from scena.storage.json_text import json_text

SUFFIXES = (".jsonl", ".json", ".csv")
MOST_COLUMNS = 1000
"""A longer vector is refused."""


class AnswerFileError(ScenaError, ValueError):
    """A file cannot hold the predictions."""


def check_suffix(path: Path) -> None:
    """Refuses a file whose suffix is not a known format; `-` is standard output."""
    if str(path) != "-" and path.suffix.lower() not in SUFFIXES:
        raise AnswerFileError(
            f"--out {path}: the suffix gives the format: .jsonl (or .json) for JSON lines, .csv for a table. "
            f"Received: {path.suffix or 'no suffix'}."
        )


class JsonLines:
    """Writes a line of JSON for each sample; `names` are those of its classes, if they are known, and it has `one_class` or several."""

    def __init__(self, file: TextIO, names: Sequence[str] = (), *, one_class: bool = True) -> None:
        self._file = file
        self._names = names
        self._one_class = one_class

    def write(self, sample: Sample) -> None:
        """Writes outputs, targets and meta of one sample."""
        outputs, targets = _named(sample, self._names, self._one_class)
        record = {"outputs": outputs, "targets": targets or None, "meta": sample.meta}
        known = {name: plain(value) for name, value in record.items() if value is not None}
        self._file.write(json_text(known, None) + "\n")


class Table:
    """Writes a row of CSV for each sample, after a row with the names of the columns.

    Columns are `meta.NAME`, then the outputs by name, then `target.NAME`; a vector has a column for each of its values: `pred.0`, `pred.1`,
    or `pred.daisy`, `pred.rose` if it has a number for each class and `names`, those of the classes, are known. The first sample sets the
    columns; one that does not fit them is an error.
    """

    def __init__(self, file: TextIO, names: Sequence[str] = (), *, one_class: bool = True) -> None:
        self._names = names
        self._one_class = one_class
        self._writer = csv.writer(file, lineterminator="\n")
        self._columns: list[str] | None = None
        self._count = 0

    def write(self, sample: Sample) -> None:
        """Writes one row."""
        outputs, targets = _named(sample, self._names, self._one_class)
        cells = [
            *_cells(sample.meta, "meta"),
            *_cells(outputs, "" if isinstance(outputs, dict) else "output", self._names),
            *_cells(targets or None, "target"),
        ]
        columns = [name for name, _ in cells]
        if self._columns is None:
            double = sorted({name for name in columns if columns.count(name) > 1})
            if double:
                raise AnswerFileError(
                    f"Two columns of the CSV file would be called {double[0]!r}. Write .jsonl instead."
                )
            self._columns = columns
            self._writer.writerow(columns)
        if columns != self._columns:
            other = sorted(set(columns) ^ set(self._columns)) or columns
            raise AnswerFileError(
                f"Sample {self._count} does not fit the columns of the first one: {', '.join(other[:5])}. "
                "A CSV file has the same columns for all samples. Write .jsonl instead."
            )
        self._writer.writerow([value for _, value in cells])
        self._count += 1


def _named(sample: Sample, names: Sequence[str], one_class: bool) -> tuple[Any, Any]:
    """The outputs and the targets, with the names of their classes."""
    return with_class_names(sample.outputs, names, one_class=one_class), named_classes(sample.targets, names)


def _cells(value: Any, name: str, classes: Sequence[str] = ()) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [
            cell for key, item in value.items() for cell in _cells(item, f"{name}.{key}" if name else str(key), classes)
        ]
    by_class = (
        isinstance(value, np.ndarray)
        and value.dtype.kind == "f"
        and value.shape == (len(classes),)
        and len(set(classes)) == len(classes)
    )
    value = plain(value)
    if isinstance(value, list):
        if any(isinstance(item, list | dict) for item in value) or len(value) > MOST_COLUMNS:
            raise AnswerFileError(
                f"A row of CSV cannot hold {name!r}: {_kind(value)}. Write .jsonl instead, or convert it to "
                "a number or a text in post-processing."
            )
        parts = classes if by_class else range(len(value))
        return [(f"{name}.{part}", item) for part, item in zip(parts, value, strict=True)]
    return [] if value is None and name in ("meta", "target") else [(name, value)]


def _kind(value: list[Any]) -> str:
    return f"it has {len(value)} values" if len(value) > MOST_COLUMNS else "it is nested"


def plain(value: Any) -> Any:
    """Arrays and numpy numbers as JSON values."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist() if value.dtype.kind in "biuf" else plain(value.tolist())
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
