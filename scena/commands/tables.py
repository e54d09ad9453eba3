"""Printing a table: with rich on a terminal, as plain columns elsewhere."""

import sys
from collections.abc import Sequence

from scena.escaping import one_line


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
