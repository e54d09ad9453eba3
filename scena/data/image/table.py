"""Tables of image paths and labels: which columns they have, and what a table must not be mistaken for."""

import csv
import io
from collections.abc import Iterable
from typing import Any, NamedTuple

from scena.data.image.listing import FoundImages, ImageEntry, in_order, split_name
from scena.data.image.params import ImagePlacesParams
from scena.errors import DataError
from scena.storage.location import located, protocol_of, read_text

_LABEL_NAMES = ("label", "labels", "class", "class_name", "category", "target")
_SPLIT_NAMES = ("split", "subset", "partition")
_JOINED = (";", "|", ",", " ", "+", "&", "/")
"""What separates the labels of an image that has several."""
_BRACKETS = " []()\"'"


class _Row(NamedTuple):
    line: int
    path: str
    label: str
    split: str


def images_in_table(params: ImagePlacesParams) -> FoundImages:
    """The images that a CSV or TSV file lists with their labels."""
    table = located(params.csv)
    base = located(params.images) if params.images is not None else table.parent
    skipped: list[tuple[str, str]] = []
    chosen: dict[str, _Row] = {}
    rows, has_splits, first = _rows(table, params)
    if first and "\0" not in first and _joined(base, first).is_file():
        raise DataError(
            f"The first line of {str(table)!r} names an image, {first!r}, and not columns, so that image would be lost. Set header=False."
        )
    for row in rows:
        known = chosen.get(row.path)
        if "\0" in row.path:
            skipped.append((f"line {row.line}", "its path has a NUL character"))
        elif not row.path:
            skipped.append((f"line {row.line}", "the table gives no path"))
        elif not row.label:
            skipped.append((row.path, f"line {row.line} of the table gives no label"))
        elif known is not None and known.label != row.label:
            raise DataError(
                f"{str(table)!r} lists {row.path!r} twice with different labels: {known.label!r}, and {row.label!r} in line "
                f"{row.line}. An image has one label; several are not supported yet."
            )
        elif known is not None and known.split != row.split:
            where = f"{known.split!r}, and {row.split!r} in line {row.line}"
            raise DataError(f"{str(table)!r} lists {row.path!r} in two splits: {where}.")
        elif known is not None:
            skipped.append((row.path, f"line {row.line} repeats it"))
        elif has_splits and not row.split:
            skipped.append((row.path, f"line {row.line} of the table gives no split"))
        else:
            chosen[row.path] = row
    if not chosen:
        raise DataError(
            f"{str(table)!r} lists no image with a label. Does another character separate columns (delimiter)?"
        )
    classes = sorted({row.label for row in chosen.values()}, key=_natural)
    _refuse_several_labels(table, classes)
    number = {name: index for index, name in enumerate(classes)}
    images = [ImageEntry(_joined(base, row.path), row.path, number[row.label]) for row in chosen.values()]
    images.sort(key=lambda entry: (entry.label, entry.name))
    splits: dict[str, list[ImageEntry]] = {}
    if has_splits:
        for name in in_order(sorted({row.split for row in chosen.values()})):
            splits[name] = [entry for entry in images if chosen[entry.name].split == name]
    return FoundImages(classes, images, skipped, splits)


def _joined(base: Any, name: str) -> Any:
    """What a line of a table names: an address, or a path from `base` on."""
    return located(name) if protocol_of(name) else base / name


def _natural(label: str) -> tuple[int, int, str]:
    return (0, int(label), "") if label.lstrip("-").isdecimal() else (1, 0, label)


def _refuse_several_labels(table: Any, classes: list[str]) -> None:
    """Raises if classes look like combinations of fewer labels: `beach;sea`, `sea`, `beach;sunset`."""
    for separator in _JOINED:
        sets = [tuple(filter(None, (part.strip(_BRACKETS) for part in name.split(separator)))) for name in classes]
        parts = {part for labels in sets for part in labels}
        lengths = {len(labels) for labels in sets}
        # names of several words that share some ("red car", "blue car") have one length, or more words than names
        if max(lengths, default=0) > 1 and len(lengths) > 1 and len(parts) < len(classes):
            shown = next(name for name, labels in zip(classes, sets, strict=True) if len(labels) > 1)
            raise DataError(
                f"{str(table)!r} seems to give several labels to an image, for example {shown!r}: its {len(classes)} different "
                f"labels combine {len(parts)} words. An image has one label; several are not supported yet. If these are names "
                f"of classes, write them without {separator!r}."
            )


def _rows(table: Any, params: ImagePlacesParams) -> tuple[list[_Row], bool, str]:
    """The rows, whether they name splits, and what a header has in the column of the paths."""
    text = read_text(table, f"The table {str(table)!r}")
    delimiter = params.delimiter or ("\t" if table.suffix.lower() in (".tsv", ".tab") else ",")
    if len(delimiter) != 1:
        raise DataError(f"delimiter is one character. Received: {delimiter!r}.")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        names = [name.strip() for name in next(reader, [])] if params.header else None
        lines = [(reader.line_num, [value.strip() for value in row]) for row in reader if row]
    except csv.Error as error:
        raise DataError(f"Line {reader.line_num} of the table {str(table)!r} cannot be read: {error}.") from None
    path = _column(table, names, params.path_column) if params.path_column is not None else 0
    if params.split_column is not None:
        split: int | None = _column(table, names, params.split_column)
    else:
        split = next((index for index, name in enumerate(names or []) if name.lower() in _SPLIT_NAMES), None)
    label = _label_column(table, names, params.label_column, {path, split}, (row for _, row in lines))

    def value(row: list[str], index: int | None) -> str:
        return row[index] if index is not None and index < len(row) else ""

    rows = []
    for line, row in lines:
        named = value(row, split)
        rows.append(_Row(line, value(row, path), value(row, label), split_name(named) or named))
    return rows, split is not None, value(names or [], path)


def _label_column(table: Any, names: list[str] | None, wanted: str | None, taken: set[int | None],
                  rows: Iterable[list[str]]) -> int:  # fmt: skip
    if wanted is not None:
        return _column(table, names, wanted)
    free = [index for index in range(len(names or [])) if index not in taken]
    if names is None or not free:
        return 1
    named = [index for index in free if names[index].lower() in _LABEL_NAMES]
    if len(named) == 1 or len(free) == 1:
        return (named or free)[0]
    columns = ", ".join(names[index] for index in free[:6]) + (", …" if len(free) > 6 else "")
    if all(row[index] in ("0", "1") for row in rows for index in free if index < len(row)):
        raise DataError(
            f"{str(table)!r} has a column of 0 and 1 for each label ({columns}), as for images with several labels. An image has one "
            "label, whose name is in one column; several are not supported yet."
        )
    raise DataError(
        f"{str(table)!r} has several columns beside the path: {columns}. Name that of the labels (label_column)."
    )


def _column(table: Any, names: list[str] | None, wanted: str) -> int:
    if wanted.isdecimal():
        return int(wanted)
    if names is None or wanted not in names:
        raise DataError(f"{str(table)!r} has no column {wanted!r}; it has {names if names else 'no header'}.")
    return names.index(wanted)
