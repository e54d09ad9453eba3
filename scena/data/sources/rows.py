"""Samples from the rows of CSV and TSV files."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from scena.data.generator import RandomAccessGenerator
from scena.data.params import PipelineMode
from scena.data.sample import Sample
from scena.data.sources.params import RowGeneratorParams
from scena.errors import DataError
from scena.storage.location import located, only_here, read_bytes, reason_of


class RowGenerator(RandomAccessGenerator[RowGeneratorParams]):
    """Each row is a sample: inputs and targets are dicts of strings by column, meta is "file:line"."""

    def __init__(self, params: RowGeneratorParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        if only_here(*params.files):
            self.main_process = True  # type: ignore[misc]
        self.rows: list[tuple[str, dict[str, str]]] = []
        for name in params.files:
            self.rows += _read(located(name), params, targets=mode.has_targets)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Sample:
        where, row = self.rows[index]
        targets = [column for column in self.params.target_columns if column in row]
        inputs = self.params.input_columns or [column for column in row if column not in targets]
        return Sample(inputs={c: row[c] for c in inputs}, targets={c: row[c] for c in targets}, meta=where)

    def fingerprint(self) -> list[dict[str, str]]:
        """The rows themselves."""
        return [row for _, row in self.rows]


def _read(path: Any, params: RowGeneratorParams, targets: bool) -> list[tuple[str, dict[str, str]]]:
    delimiter = params.delimiter or ("\t" if path.suffix.lower() in (".tsv", ".tab") else ",")
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be read: {reason_of(error)}.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{str(path)!r} is not UTF-8 text: {error.reason} at byte {error.start}.") from None
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        columns = list(reader.fieldnames or [])
    except csv.Error as error:
        raise DataError(f"{str(path)!r} is not a table: {error} in its header.") from None
    twice = [c for c in columns if columns.count(c) > 1]
    if twice:
        raise DataError(
            f"{str(path)!r} has the column {twice[0]!r} {columns.count(twice[0])} times; rename or remove one."
        )
    wanted = [*params.input_columns, *(params.target_columns if targets else [])]
    missing = [c for c in wanted if c not in columns]
    if missing:
        raise DataError(f"{str(path)!r} has no column {missing[0]!r}; it has {columns} (delimiter {delimiter!r}).")
    rows = []
    for row in _rows(reader, path):
        if None in row or None in row.values():
            raise DataError(
                f"{path}:{reader.line_num}: the row does not have the {len(columns)} columns of the header."
            )
        rows.append((f"{path}:{reader.line_num}", dict(row)))
    return rows


def _rows(reader: "csv.DictReader[str]", path: Any) -> Iterator[dict[str, str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: the table cannot be read: {error}. Is a quote missing?") from None
