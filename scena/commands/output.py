"""Tables and results on the terminal, and results as JSON."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scena.scenario.errors import ScenarioError
from scena.terminal import one_line


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table to standard output; names of runs and values cannot steer the terminal."""
    columns, rows = [one_line(column) for column in columns], [[one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*row)
        Console(markup=False).print(table)
        return
    widths = [max(len(cell) for cell in cells) for cells in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


Results = dict[str, dict[str, Any]]
"""Named values by model (and part of the data)."""

NOTHING = "There are no results: the model has no metrics, and the scenario no evaluator."


def print_results(results: Results, json_file: Path | None, nothing: str = NOTHING) -> None:
    """Prints a table, and writes JSON if a file is given; with `-` only the JSON is printed.

    Args:
        results: what to show.
        json_file: the file.
        nothing: what is printed if there is no value at all.
    """
    from scena.model.tensorboard_data import plain_result  # late: it needs numpy, `--help` does not

    text = json.dumps(plain_result(results), indent=1, ensure_ascii=False)
    if json_file is not None and str(json_file) == "-":
        print(text)
        return
    print(table(results) or nothing)
    if json_file is not None:
        try:
            json_file.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise ScenarioError(f"Cannot write to --json {json_file}: {error.strerror or error}.") from error


def table(results: Results) -> str:
    """The results as a text table, a row for each value and a column for each model; empty if there are none."""
    names = list(dict.fromkeys(name for values in results.values() for name in values))
    if not names:
        return ""
    rows = [["", *map(one_line, results)]] if len(results) > 1 else []
    rows += [[one_line(name), *(number(values.get(name)) for values in results.values())] for name in names]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def number(value: Any) -> str:
    """A result for a table: six digits of a number, nothing where there is none."""
    from scena.model.tensorboard_data import plain_result

    value = plain_result(value)
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else one_line(str(value))
