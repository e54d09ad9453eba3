"""Reads sheets of runs: xlsx, CSV and YAML."""

import csv
import io
from pathlib import Path
from typing import Any

from scena.errors import ExperimentError, ParamsError, did_you_mean
from scena.experiments.sheets.sheet import Flag, SheetRun, as_word, checked, read_grid, split_words
from scena.params.files.entries import Section
from scena.params.files.files import document_of

MOST_BYTES = 100 << 20
MOST_CELLS = 1_000_000
RUN_KEYS = ("id", "script", "skip", "cleanup", "user", "params")
TOP_KEYS = ("script", "params", "runs")


def read_sheet(path: Path, name: str | None = None) -> list[SheetRun]:
    """The runs that an `.xlsx`, `.csv` or `.yaml` file describes; `name` is the sheet of an xlsx file, the first one by default."""
    if not path.is_file():
        raise ExperimentError(f"There is no file {path}.")
    kind = path.suffix.lower()
    if name is not None and kind not in (".xlsx", ".xlsm"):
        raise ExperimentError(f"--sheet {name}: only xlsx files have several sheets; {path} has only one.")
    if kind in (".xlsx", ".xlsm"):
        return read_grid(_xlsx_rows(path, name), str(path))
    if kind == ".csv":
        return read_grid(_csv_rows(path), str(path))
    if kind in (".yaml", ".yml"):
        return _yaml_runs(path)
    raise ExperimentError(f"{path}: expected a file .xlsx, .csv or .yaml. Received: {kind or 'no ending'!r}.")


def _xlsx_rows(path: Path, name: str | None) -> list[list[Any]]:
    try:
        import openpyxl
    except ImportError as error:
        raise ExperimentError("Reading xlsx files needs openpyxl: install scena[sheets].") from error
    import warnings
    import zipfile

    try:
        content = io.BytesIO(path.read_bytes())  # openpyxl would leave a file open that it cannot read
        with zipfile.ZipFile(content) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MOST_BYTES:
            raise ValueError(f"it would unpack to {size:,} bytes, more than any sheet of runs has")
        with warnings.catch_warnings():  # of parts it does not know; only cells are read here
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(content)
    except Exception as error:  # openpyxl checks nothing: what a file makes it raise has many types
        what = (str(error).splitlines() or [type(error).__name__])[0]
        raise ExperimentError(f"{path} cannot be read as an xlsx file: {what}.") from error
    sheets = {sheet.title: sheet for sheet in book.worksheets}  # without those that hold a chart only
    if not sheets:
        raise ExperimentError(f"{path} has no sheet with cells.")
    if name is not None and name not in sheets:
        raise ExperimentError(
            f"{path} has no sheet {name!r}{did_you_mean(name, sheets)}; there are: {', '.join(sheets)}."
        )
    sheet = sheets[name] if name is not None else book.worksheets[0]
    if sheet.max_row * sheet.max_column > MOST_CELLS:
        raise ExperimentError(
            f"{path}: the sheet {sheet.title!r} has {sheet.max_row:,} rows and {sheet.max_column:,} columns, more than any sheet of "
            "runs. Is there a stray value in a distant cell?"
        )
    for row in sheet.iter_rows():
        for cell in row:
            if cell.data_type == "f":
                raise ExperimentError(
                    f"{path}: the cell {cell.coordinate} holds a formula, {cell.value!r}; a sheet of runs holds plain values."
                )
    return [list(row) for row in sheet.iter_rows(values_only=True)]


def _csv_rows(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ExperimentError(f"{path} is not a text file in UTF-8.") from None
    try:
        dialect: Any = csv.Sniffer().sniff(text.splitlines()[0] if text else "", ",;\t")
    except csv.Error:
        dialect = csv.excel
    try:
        return list(csv.reader(text.splitlines(keepends=True), dialect))
    except csv.Error as error:
        raise ExperimentError(f"{path} cannot be read as a table: {error}.") from None


def _yaml_runs(path: Path) -> list[SheetRun]:
    try:
        document = document_of(str(path))
    except ParamsError as error:
        raise ExperimentError(str(error)) from None
    _check_keys(document, TOP_KEYS)
    entries = document.get("runs")
    if not isinstance(entries, list):
        raise ExperimentError(f"{path}: expected a list of runs (`runs:`, then `- id: 1` and so on).")
    common = _flags(document.get("params"), "", str(path))
    runs = []
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, Section):
            raise ExperimentError(f"{path}: run {number} must hold names and values, such as `id: 1`.")
        runs.append(_yaml_run(entry, document, common, f"{path} run {number}"))
    return checked(runs, str(path))


def _yaml_run(entry: Section, document: Section, common: list[Flag], where: str) -> SheetRun:
    _check_keys(entry, RUN_KEYS)
    script = entry.get("script", document.get("script"))
    if script is None or entry.get("id") is None:
        raise ExperimentError(f"{where}: the {'id' if script is not None else 'script'} is missing.")
    own = _flags(entry.get("params"), "", where)
    names = {flag.name for flag in own}
    user = entry.get("user")
    return SheetRun(
        as_word(entry["id"]),
        [as_word(word) for word in script] if isinstance(script, list) else split_words(as_word(script), where),
        [*(flag for flag in common if flag.name not in names), *own],
        bool(entry.get("skip", False)),
        bool(entry.get("cleanup", False)),
        {name: as_word(value) for name, value in user.items()} if isinstance(user, Section) else {},
        where,
    )


def _flags(values: Any, prefix: str, where: str) -> list[Flag]:
    """Nested names become flags with dots, lists several words; null skips a flag, and `class` is the choice itself."""
    if values is None:
        return []
    if not isinstance(values, Section):
        raise ExperimentError(f"{where}: `params` must hold names and values. Received: {values!r}.")
    flags = []
    for name, value in values.items():
        full = prefix if name == "class" and prefix else f"{prefix}.{name}" if prefix else name
        if isinstance(value, Section):
            flags += _flags(value, full, where)
        elif isinstance(value, list):
            flags.append(Flag(full, [as_word(item) for item in value]))
        elif value is not None:
            flags.append(Flag(full, [as_word(value)]))
    return flags


def _check_keys(section: Section, known: tuple[str, ...]) -> None:
    for key in section:
        if key not in known:
            raise ExperimentError(
                f"{section.origins[key]}: {key!r} does not exist here{did_you_mean(key, known)}; there are: {', '.join(known)}."
            )
