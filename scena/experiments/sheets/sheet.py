"""Sheets of runs: the meaning of a row, and the layout that xlsx and CSV share.

Row one has the headings USER, RESULT, SKIP, SCRIPT, ID, CLEANUP and PARAMS; row two the groups of the parameters, row three
their names with `:split` and `:empty`; each row below is a run. `files.py` reads the files.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scena.errors import ExperimentError, did_you_mean

HEADINGS = ("USER", "RESULT", "SKIP", "SCRIPT", "ID", "CLEANUP", "PARAMS")
REQUIRED = ("SCRIPT", "ID", "PARAMS")
NO_GROUP = "default"
_ID = re.compile(r"[\w][\w.+-]*")


class Flag(NamedTuple):
    """One flag of a run's command line."""

    name: str
    words: list[str]

    def on_command_line(self) -> list[str]:
        """Its words; a value that looks like a flag is joined to the name."""
        if len(self.words) == 1 and self.words[0].startswith("-"):
            return [f"--{self.name}={self.words[0]}"]
        return [f"--{self.name}", *self.words]


@dataclass
class SheetRun:
    """One run that a sheet describes."""

    id: str
    script: list[str]
    flags: list[Flag]
    skip: bool = False
    cleanup: bool = False
    user: dict[str, str] = field(default_factory=dict)
    where: str = ""
    """Its place in the file, for errors."""

    def words(self) -> list[str]:
        """Its command line as in the sheet."""
        return [*self.script, *(word for flag in self.flags for word in flag.on_command_line())]


class _Column(NamedTuple):
    position: int
    heading: str
    name: str
    split: bool = False
    empty: bool = False


def read_grid(rows: Sequence[Sequence[Any]], file: str) -> list[SheetRun]:
    """The runs of a table in the layout above; `file` is named in errors."""
    if len(rows) < 3:
        raise ExperimentError(
            f"{file}: a sheet has three rows of headings (USER, SKIP, SCRIPT, ID, CLEANUP, PARAMS; groups; names) and a "
            f"row for each run. Received {len(rows)} rows."
        )
    columns = _columns(rows, file)
    _check_nameless(rows, columns, file)
    runs = []
    for number, row in enumerate(rows[3:], 4):
        if any(not _is_blank(cell) for cell in row):
            runs.append(_run(row, columns, f"{file} row {number}"))
    return checked(runs, file)


def checked(runs: list[SheetRun], file: str) -> list[SheetRun]:
    """The runs, if each has an ID of its own that can be the name of a directory."""
    seen: dict[str, str] = {}
    for run in runs:
        if not _ID.fullmatch(run.id):
            raise ExperimentError(
                f"{run.where}: the ID names a directory, so it has letters, digits, `_`, `-`, `+` and `.`. Received: {run.id!r}."
            )
        if run.id in seen:
            raise ExperimentError(f"{run.where}: the ID {run.id} appears twice; the first is in {seen[run.id]}.")
        seen[run.id] = run.where
    if not runs:
        raise ExperimentError(f"{file}: there is no run in it.")
    return runs


def _columns(rows: Sequence[Sequence[Any]], file: str) -> list[_Column]:
    width = max(len(row) for row in rows[:3])
    first, second, third = ([*row, *[None] * (width - len(row))] for row in rows[:3])
    columns: list[_Column] = []
    heading, group = "", NO_GROUP
    for index in range(width):
        if not _is_blank(first[index]):
            heading = str(first[index]).strip().upper()
            if heading not in HEADINGS:
                raise ExperimentError(
                    f"{file}: row 1 has the heading {first[index]!r}{did_you_mean(heading, HEADINGS)}; "
                    f"there are: {', '.join(HEADINGS)}."
                )
            if any(column.heading == heading for column in columns):
                raise ExperimentError(f"{file}: the heading {heading} appears twice in row 1.")
        label = "" if _is_blank(third[index]) else str(third[index]).strip()
        if heading == "PARAMS":
            if not _is_blank(second[index]) and str(second[index]).strip() != "EMPTY":
                group = str(second[index]).strip()
            if label:
                columns.append(_parameter(index, group, label, file))
        elif heading in ("USER", "RESULT") or not any(column.heading == heading for column in columns):
            columns.append(_Column(index, heading, label or heading))
    missing = [name for name in REQUIRED if name != "PARAMS" and not any(column.heading == name for column in columns)]
    if missing or "PARAMS" not in [str(cell).strip().upper() for cell in first]:
        raise ExperimentError(
            f"{file}: row 1 lacks the heading {', '.join(missing or ['PARAMS'])}; it has: "
            f"{', '.join(str(cell) for cell in first if not _is_blank(cell)) or 'nothing'}."
        )
    return columns


def _check_nameless(rows: Sequence[Sequence[Any]], columns: list[_Column], file: str) -> None:
    """Refuses values in columns that belong to nothing: the run would start without them."""
    known = {column.position for column in columns if column.heading}
    for number, row in enumerate(rows[3:], 4):
        for index, value in enumerate(row):
            if index not in known and not _is_blank(value):
                raise ExperimentError(
                    f"{file}: column {column_letters(index)} has values ({as_word(value)!r} in row {number}) but no name. "
                    "Name the parameter in row 3, or move the column under USER if it is a note."
                )


def column_letters(index: int) -> str:
    """The name of a column in a spreadsheet: A, B, …, Z, AA, …"""
    name = ""
    while index >= 0:
        name = chr(ord("A") + index % 26) + name
        index = index // 26 - 1
    return name


def _parameter(index: int, group: str, label: str, file: str) -> _Column:
    name, *marks = label.split(":")
    for mark in marks:
        if mark not in ("split", "empty"):
            raise ExperimentError(
                f"{file}: row 3 has {label!r}, but after the name there may be `:split` and `:empty` only."
            )
    full = name.strip().lstrip("-")
    if group != NO_GROUP:
        full = f"{group.lstrip('-')}.{full}"
    return _Column(index, "PARAMS", full, "split" in marks, "empty" in marks)


def _run(row: Sequence[Any], columns: list[_Column], where: str) -> SheetRun:
    def cell(column: _Column) -> Any:
        return row[column.position] if column.position < len(row) else None

    single = {column.heading: cell(column) for column in columns if column.heading not in ("USER", "PARAMS")}
    for name in ("ID", "SCRIPT"):
        if _is_blank(single[name]):
            raise ExperimentError(f"{where}: the {name} is missing.")
    flags = []
    for column in columns:
        if column.heading != "PARAMS":
            continue
        value = cell(column)
        if _is_blank(value):
            flags += [Flag(column.name, [])] if column.empty else []
            continue
        text = as_word(value)
        flags.append(Flag(column.name, split_words(text, where) if column.split else [text]))
    return SheetRun(
        as_word(single["ID"]),
        split_words(as_word(single["SCRIPT"]), where),
        flags,
        is_true(single.get("SKIP")),
        is_true(single.get("CLEANUP")),
        {
            column.name: as_word(cell(column))
            for column in columns
            if column.heading == "USER" and not _is_blank(cell(column))
        },
        where,
    )


def split_words(text: str, where: str) -> list[str]:
    """The words of a text, as a shell sees them."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ExperimentError(f"{where}: {text!r} cannot be split into words: {error}.") from None


def as_word(value: Any) -> str:
    """A cell as a word of a command line. A spreadsheet keeps every number as a float: 32.0 is 32."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value).strip()


def is_true(value: Any) -> bool:
    """Whether a cell means yes: anything but empty, 0, false, no and `-`."""
    return not _is_blank(value) and str(value).strip().lower() not in ("0", "0.0", "false", "no", "n", "-")


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
