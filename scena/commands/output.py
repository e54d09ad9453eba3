"""What commands write: tables and results on the terminal, results as JSON, and checks of files and folders before the work."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.display import number, one_line, terminal_width, visible
from scena.errors import ScenaError, ScenarioError
from scena.storage.durable import missing_directories, remove_empty
from scena.storage.json_text import json_text
from scena.storage.run_layout import STUDY_FILE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from scena.evaluation.per_sample import Intervals

Results = dict[str, dict[str, Any]]
"""Named values by model (and part of the data)."""

NOTHING = "There are no results: the model has no metrics, and the scenario no evaluator."


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows with their cells below each other; what they hold cannot steer the terminal."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, wide: bool = False) -> None:
    """Prints a table to standard output; on a terminal, cells that are too long are folded, unless it may be `wide`."""
    if wide or not sys.stdout.isatty():
        print(text_table([columns, *rows]))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(one_line(column), overflow="fold")
    for row in rows:
        table.add_row(*map(one_line, row))
    Console(markup=False, width=terminal_width()).print(table)


def print_wrapped(text: str) -> None:
    """Prints a sentence to standard output, folded to the width of the terminal."""
    import textwrap  # late: `--help` does not need it

    print("\n".join(textwrap.wrap(visible(text), terminal_width() or 100)))


def print_results(results: Results, json_file: Path | None, nothing: str = NOTHING) -> None:
    """Prints a table, or the text `nothing`, and writes JSON if a file is given; with `-` only the JSON is printed."""
    from scena.model.tensorboard import plain_result  # late: it needs numpy, `--help` does not

    text = json_text(plain_result(results))
    if json_file is not None and str(json_file) == "-":
        print(text)
        return
    names = list(dict.fromkeys(name for values in results.values() for name in values))
    heads = [["", *results]] if len(results) > 1 else []
    rows = [[name, *(number(plain_result(values.get(name))) for values in results.values())] for name in names]
    print(text_table([*heads, *rows]) if names else nothing)
    if json_file is not None:
        _write_json(json_file, text)


def print_intervals(
    results: Results, intervals: "dict[str, Intervals]", number_of: int, json_file: Path | None
) -> None:
    """Prints results with their bootstrap intervals, what they mean, and why some have none; or JSON, as `print_results`."""
    from scena.evaluation.statistics.bootstrap import FEW_SAMPLES
    from scena.evaluation.statistics.student import WITHOUT_WIDTH
    from scena.model.tensorboard import plain_result

    def entry(name: str, value: Any, own: "Intervals") -> dict[str, Any]:
        found = own.by_name.get(name)
        ends = {"low": found.low, "high": found.high} if found is not None else {"low": None, "high": None}
        return {"value": plain_result(value), **ends}

    full = {
        title: {name: entry(name, value, intervals[title]) for name, value in values.items()}
        for title, values in results.items()
    }
    text = json_text(full)
    if json_file is not None and str(json_file) == "-":
        print(text)
        return
    for title, values in full.items():
        if len(full) > 1:
            print(one_line(title))
        rows = [
            [name, number(one["value"]), "" if one["low"] is None else f"{one['low']:.4g} – {one['high']:.4g}"]
            for name, one in values.items()
        ]
        print(text_table([["", "value", "95 % interval"], *rows]) if rows else NOTHING)
    counts = sorted({own.n for own in intervals.values()})
    print_wrapped(
        f"Percentile intervals of {number_of} resamples of {' or '.join(map(str, counts))} samples. They hold for this model on other "
        "such samples, and say nothing about another training."
    )
    if counts[0] < FEW_SAMPLES:
        print_wrapped(f"With fewer than {FEW_SAMPLES} samples, such intervals are too short.")
    if any(interval.without_width for own in intervals.values() for interval in own.by_name.values()):
        print_wrapped(WITHOUT_WIDTH)
    for line in dict.fromkeys(line for own in intervals.values() for line in own.notes):
        print_wrapped(line)
    if json_file is not None:
        _write_json(json_file, text)


def _write_json(file: Path, text: str) -> None:
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"Cannot write to --json {file}: {error.strerror or error}.") from error


def check_file(flag: str, file: Path | None) -> None:
    """Raises ScenarioError, before the work, if a file cannot be written; None and `-`, the terminal, always can."""
    if file is None or str(file) == "-":
        return
    reason = None
    if not file.parent.is_dir():
        reason = f"there is no folder {file.parent}"
    elif file.is_dir():
        reason = "it is a folder"
    elif not os.access(file if file.exists() else file.parent, os.W_OK):
        reason = "permission denied"
    if reason is not None:
        raise ScenarioError(f"Cannot write to {flag} {file}: {reason}.")


def check_plot(file: Path | None) -> None:
    """Checks that a plot can be drawn and written to the file of --plot, before the work."""
    if file is not None:
        from scena.plots import check_suffix

        check_suffix(file)
        check_file("--plot", file)


def write_plot(file: Path, figures: "dict[str, Figure]") -> None:
    """Writes the figures of a validation to the file of --plot."""
    from scena.plots import save_figures

    if not figures:
        raise ScenarioError(
            "--plot: there is nothing to draw. Outputs are neither classes nor single numbers, and the evaluator has no plots()."
        )
    save_figures(file, figures)
    print(f"Plot: {file}")


@contextmanager
def withdrawn_if_refused(folder: Path) -> Iterator[None]:
    """Removes a new folder with its study, and the new ones above it, if the block raises an error of Scena."""
    new = missing_directories(folder)
    try:
        yield
    except ScenaError:
        if folder in new:
            with contextlib.suppress(OSError):
                (folder / STUDY_FILE).unlink(missing_ok=True)
        remove_empty(new)  # one in which another command has begun stays
        raise


def make_folder(flag: str, folder: Path) -> None:
    """Makes a folder and those above it, and tries to write into it; raises ScenarioError if that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ScenarioError(f"Cannot write to {flag} {folder}: {error.strerror or error}.") from error
