"""Which images there are, and of which class: folders with a folder for each class, or tables of paths and labels."""

import csv
import io
import os
from typing import Any

from scena.data.errors import DataError
from scena.data.location import (
    entries,
    files_below,
    is_folder,
    located,
    protocol_of,
    read_bytes,
    reason_of,
    unquoted,
)


class ImageEntry:
    """One image file: where it is, how it is called, and the number of its class."""

    __slots__ = ("label", "name", "path")

    def __init__(self, path: Any, name: str, label: int) -> None:
        self.path = path
        self.name = name
        self.label = label

    def __repr__(self) -> str:
        return f"ImageEntry({self.name!r}, {self.label})"


class FoundImages:
    """The images of a data set.

    Attributes:
        classes: the names of the classes; a label is a place in this list.
        entries: the images, by class and name.
        left_out: what was found but cannot be used: (name, reason).
    """

    def __init__(self, classes: list[str], entries: list[ImageEntry], left_out: list[tuple[str, str]]) -> None:
        self.classes = [printable(name) for name in classes]
        self.entries = entries
        self.left_out = [(printable(name), reason) for name, reason in left_out]


def printable(name: str) -> str:
    """The name of a file, with what is not text in it (a system without UTF-8 has written it) as \\xff."""
    return os.fsencode(name).decode(errors="backslashreplace")


def images_in_folders(folder: Any) -> FoundImages:
    """The files in a folder for each class, at any depth below it. Hidden files are not looked at."""
    root = located(folder)
    if not is_folder(root):
        raise DataError(f"The folder of images {str(root)!r} does not exist.")
    inside = entries(root)
    folders = [path for path, inner in inside if inner]
    if not folders:
        raise DataError(f"{str(root)!r} has no folders in it: there must be one for each class, with its images.")
    classes: list[str] = []
    images: list[ImageEntry] = []
    left_out = [(unquoted(path), "it lies outside of the class folders") for path, inner in inside if not inner]
    for class_folder in folders:
        name = unquoted(class_folder)
        files = files_below(class_folder)
        if not files:
            left_out.append((f"{name}/", "the class folder has no images"))
            continue
        images += [ImageEntry(path, f"{name}/{inner}", len(classes)) for inner, path in files]
        classes.append(name)
    if not images:
        raise DataError(f"The class folders of {str(root)!r} hold no files.")
    return FoundImages(classes, images, left_out)


def images_in_table(
    file: Any,
    *,
    folder: Any = None,
    delimiter: str | None = None,
    header: bool = True,
    path_column: str | None = None,
    label_column: str | None = None,
) -> FoundImages:
    """The images that a CSV or TSV file lists with their labels.

    Args:
        file: a table with a column of paths and one of labels.
        folder: what relative paths start from; default: the folder of the table.
        delimiter: what separates columns; default: a tab in .tsv files, else a comma.
        header: the first line names the columns.
        path_column, label_column: their names, or their numbers from 0; default: the first and the second.
    """
    table = located(file)
    base = located(folder) if folder is not None else table.parent
    rows = _rows(table, delimiter, header, path_column, label_column)
    left_out: list[tuple[str, str]] = []
    labels: dict[str, str] = {}
    for line, name, label in rows:
        if not name:
            left_out.append((f"line {line}", "the table gives no path"))
        elif not label:
            left_out.append((name, f"line {line} of the table gives no label"))
        elif name in labels and labels[name] != label:
            raise DataError(
                f"{str(table)!r} lists {name!r} twice with different labels: {labels[name]!r}, and {label!r} in line {line}."
            )
        elif name in labels:
            left_out.append((name, f"line {line} repeats it"))
        else:
            labels[name] = label
    if not labels:
        raise DataError(f"{str(table)!r} lists no image with a label.")
    classes = sorted(set(labels.values()), key=_natural)
    number = {name: place for place, name in enumerate(classes)}
    images = [ImageEntry(_joined(base, name), name, number[label]) for name, label in labels.items()]
    images.sort(key=lambda entry: (entry.label, entry.name))
    return FoundImages(classes, images, left_out)


def _joined(base: Any, name: str) -> Any:
    """What a line of a table names: an address, or a path from `base` on."""
    return located(name) if protocol_of(name) else base / name


def _natural(label: str) -> tuple[int, int, str]:
    return (0, int(label), "") if label.lstrip("-").isdecimal() else (1, 0, label)


def _rows(table: Any, delimiter: str | None, header: bool, path_column: str | None,
          label_column: str | None) -> list[tuple[int, str, str]]:  # fmt: skip
    delimiter = delimiter or ("\t" if table.suffix.lower() in (".tsv", ".tab") else ",")
    try:
        text = read_bytes(table).decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"The table {str(table)!r} cannot be read: {reason_of(error)}.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"The table {str(table)!r} is not UTF-8 text: {error.reason} at byte {error.start}.") from None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names = next(reader, []) if header else None
    places = [_column(table, names, path_column, 0), _column(table, names, label_column, 1)]
    rows = []
    for row in reader:
        if row:
            path, label = (row[place].strip() if place < len(row) else "" for place in places)
            rows.append((reader.line_num, path, label))
    return rows


def _column(table: Any, names: list[str] | None, wanted: str | None, default: int) -> int:
    if wanted is None:
        return default
    if wanted.isdecimal():
        return int(wanted)
    if names is None or wanted not in names:
        raise DataError(f"{str(table)!r} has no column {wanted!r}; it has {names if names else 'no header'}.")
    return names.index(wanted)


def as_report(left_out: list[tuple[str, str]], most: int = 10) -> str:
    """What was left out, in a few lines."""
    lines = [f"  {name}: {reason}" for name, reason in left_out[:most]]
    more: Any = len(left_out) - most
    return "\n".join([*lines, *([f"  … and {more} more"] if more > 0 else [])])
