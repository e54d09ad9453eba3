"""Samples from text files: the lines of list files, and the rows of CSV and TSV files."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from scena.data.generator import RandomAccessGenerator
from scena.data.params import PipelineMode
from scena.data.sample import Sample
from scena.data.sources.params import ListFileGeneratorParams, RowGeneratorParams
from scena.errors import DataError, did_you_mean
from scena.storage.location import located, only_here, read_text, reading

P = TypeVar("P", bound=ListFileGeneratorParams)


class ListFileGenerator(RandomAccessGenerator[P]):
    """Each line is a sample: its inputs and targets are the line itself, for a processor to load. Override `sample` to change that.

    Evaluation keeps the order of lists and lines. Training draws from the lists by `list_ratios`: an epoch has as many samples as
    there are lines in lists with a ratio, a list is used up before one of its lines is repeated.
    """

    def __init__(self, params: P, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        if not params.lists:
            raise DataError(
                f"There are no list files for {mode.value}. Name some: --train.lists FILE… in a training, --data.lists FILE… in "
                "lav and predict, lists=[…] in Python."
            )
        self.main_process = only_here(*params.lists)
        self.lines: list[str] = []
        self.sizes: list[int] = []
        for name in params.lists:
            lines = read_list(located(name), params.ignore_prefix)
            self.sizes.append(len(lines))
            self.lines += lines

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Sample:
        return self.sample(self.lines[index])

    def sample(self, line: str) -> Sample:
        return Sample(inputs=line, targets=line, meta=line)

    def fingerprint(self) -> list[str]:
        return self.lines

    def strata(self) -> Sequence[int]:
        """The list of each line."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes).tolist()

    def epoch_order(self, rng: np.random.Generator, chosen: Sequence[int]) -> Sequence[int] | None:
        """A random mixture of the lists by ratio."""
        if not self.params.list_ratios:
            return None
        lists = np.split(np.asarray(chosen), np.searchsorted(chosen, np.cumsum(self.sizes)[:-1]))
        ratios = np.array([r if len(lines) else 0.0 for r, lines in zip(self.params.list_ratios, lists, strict=True)])
        total = int(sum(len(lines) for lines, r in zip(lists, ratios, strict=True) if r))
        if not total:
            return []
        choices = rng.choice(len(ratios), size=total, p=ratios / ratios.sum())
        order = np.empty(total, np.int64)
        for number, lines in enumerate(lists):
            positions = np.flatnonzero(choices == number)
            rounds = -(-len(positions) // len(lines)) if len(lines) else 0
            drawn = [lines[rng.permutation(len(lines))] for _ in range(rounds)]
            if drawn:
                order[positions] = np.concatenate(drawn)[: len(positions)]
        return order.tolist()


def read_list(path: Any, ignore_prefix: str) -> list[str]:
    """The lines of a list file, without empty and ignored ones."""
    lines = (line.strip() for line in read_text(path, f"The list file {str(path)!r}").splitlines())
    return [line for line in lines if line and not (ignore_prefix and line.startswith(ignore_prefix))]


class RowGenerator(RandomAccessGenerator[RowGeneratorParams]):
    """Each row is a sample: inputs and targets are dicts of strings by column, meta is "file:line"."""

    def __init__(self, params: RowGeneratorParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.main_process = only_here(*params.files)
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
        return [row for _, row in self.rows]


def check_tables(params: RowGeneratorParams, mode: PipelineMode) -> None:
    """Reads the headers of the files only.

    Raises:
        DataError: there are no files, or one cannot be read, or lacks a column.
    """
    if not params.files:
        raise DataError(
            f"There are no CSV files for {mode.value}. Name some: --train.files FILE… in a training, --data.files FILE… in lav and "
            "predict, files=[…] in Python."
        )
    for name in params.files:
        path = located(name)
        with reading(repr(str(path))), path.open(encoding="utf-8-sig", newline="") as file:
            _columns(path, _reader(file, path, params), params, targets=mode.has_targets)


def _reader(lines: Iterable[str], path: Any, params: RowGeneratorParams) -> "csv.DictReader[str]":
    return csv.DictReader(
        lines, delimiter=params.delimiter or ("\t" if path.suffix.lower() in (".tsv", ".tab") else ",")
    )


def _columns(path: Any, reader: "csv.DictReader[str]", params: RowGeneratorParams, targets: bool) -> list[str]:
    """The columns of the header, among which are those that the parameters name."""
    try:
        columns = list(reader.fieldnames or [])
    except csv.Error as error:
        raise DataError(f"{str(path)!r} is not a table: {error} in its header.") from None
    other = next((one for one in ";\t|" if len(columns) == 1 and one in columns[0]), None)
    if other and params.delimiter is None:
        typed = "$'\\t'" if other == "\t" else f"'{other}'"
        raise DataError(
            f"{str(path)!r} has a single column, {columns[0][:60]!r}. Is {other!r} its delimiter? Set it with --data.delimiter {typed}, "
            "or with --train.delimiter and --val.delimiter if the scenario has those."
        )
    twice = [c for c in columns if columns.count(c) > 1]
    if twice:
        count = columns.count(twice[0])
        raise DataError(f"{str(path)!r} has the column {twice[0]!r} {count} times; rename or remove one.")
    wanted = [*params.input_columns, *(params.target_columns if targets else [])]
    missing = [c for c in wanted if c not in columns]
    if missing:
        hint = did_you_mean(missing[0], columns)
        delimiter = reader.reader.dialect.delimiter
        raise DataError(
            f"{str(path)!r} has no column {missing[0]!r}{hint}; it has {columns} (delimiter {delimiter!r})."
        )
    return columns


def _read(path: Any, params: RowGeneratorParams, targets: bool) -> list[tuple[str, dict[str, str]]]:
    reader = _reader(io.StringIO(read_text(path, repr(str(path))), newline=""), path, params)
    columns = _columns(path, reader, params, targets)
    rows = []
    try:
        for row in reader:
            where = f"{path}:{reader.line_num}"
            if None in row or None in row.values():
                raise DataError(f"{where}: the row does not have the {len(columns)} columns of the header.")
            rows.append((where, dict(row)))
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: the table cannot be read: {error}. Is a quote missing?") from None
    return rows
