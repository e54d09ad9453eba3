"""`scena runs [DIR…]`: a table of runs, the comparison of two of them, and their curves."""

import csv
import os
import sys
from pathlib import Path
from typing import Any

from scena.commands.command import Command
from scena.commands.output import check_file, print_table
from scena.params import Params, ParamsError, param
from scena.storage.run_layout import RUNS


class RunsOptions(Params):
    """What to list."""

    directories: list[Path] = param(
        [Path(RUNS)], positional="RUN", help="runs, or directories that hold some (default: runs)"
    )
    sort: str | None = param(
        None, help="sort by a column, a result or a parameter: best, duration, val_loss, model.graph, …"
    )
    reverse: bool = param(False, help="the largest first")
    filter: list[str] = param(
        [], help="only some: conditions such as status=finished 'val_acc>0.9' model.graph!=CNN run~digits"
    )
    params: list[str] | None = param(None, help="the parameters to show (default: those that differ)")
    csv: str | None = param(None, help="write all columns to this file (- for standard output)")
    compare: bool = param(False, help="of two runs: show each parameter that differs")
    plot: Path | None = param(None, help="plot a result over the epochs of each run into this file")
    result: str | None = param(
        None, help="with plot: the result (default: what the runs call best, or val_loss or loss)"
    )

    def __post_init__(self) -> None:
        if self.compare and self.plot is not None:
            raise ParamsError("--compare shows parameters, --plot results: choose one of them")
        if self.result is not None and self.plot is None:
            raise ParamsError("--result is what to plot, so it needs --plot FILE")


class Runs(Command):
    """Lists runs with status, epoch, best value, duration, last results, and the parameters in which they differ."""

    name = "runs"
    options: RunsOptions

    def run(self) -> None:
        options = self.options
        check_file("--csv", None if options.csv is None else Path(options.csv))
        check_file("--plot", options.plot)
        from scena.experiments.stored_run import find_runs, read_run

        runs = [read_run(path) for path in find_runs(options.directories)]
        if options.compare:
            _compare(runs)
        else:
            _table(runs, options, ", ".join(map(str, options.directories)))


def _table(runs: list[Any], options: RunsOptions, where: str) -> None:
    from scena.experiments.run_table import (
        FIXED,
        check_names,
        differing,
        filter_rows,
        make_rows,
        result_names,
        shown,
        sort_rows,
    )

    if not runs:
        print(f"There are no runs in {where}.", file=sys.stderr)
        return
    rows = filter_rows(make_rows(runs, _names(runs)), options.filter)
    if options.sort is not None:
        rows = sort_rows(rows, options.sort, reverse=options.reverse)
    if options.plot is not None:
        _plot(runs, [row["run"] for row in rows], options.plot, options.result)
    if options.params is not None:
        check_names(make_rows(runs), options.params, "--params")
    chosen = options.params if options.params is not None else differing(runs)
    columns = list(dict.fromkeys([*FIXED, *result_names(runs), *chosen]))
    if options.csv is not None:
        _write_csv(options.csv, columns, [[shown(row.get(name)) for name in columns] for row in rows])
        return
    keys = {run.best_key for run in runs if run.best_key}
    title = f"best {next(iter(keys))}" if len(keys) == 1 else "best"
    cells = [[_cell(name, row.get(name), shown) for name in columns] for row in rows]
    for row, cell in zip(rows, cells, strict=True):
        cell[2] = f"{row['epoch']}/{row.get('trainer.epochs') or '?'}"
    print_table([title if name == "best" else name for name in columns], cells)


def _compare(runs: list[Any]) -> None:
    from scena.experiments.run_table import differing, make_rows, shown

    if len(runs) != 2:
        raise ParamsError(f"--compare takes two runs, received {len(runs)}")
    names = _names(runs)
    first, second = make_rows(runs)
    rows = [[name, shown(first.get(name)), shown(second.get(name))] for name in differing(runs)]
    if not rows:
        print("The parameters are the same.")
        return
    print_table(["parameter", *(names[str(run.directory)] for run in runs)], rows)


def _plot(runs: list[Any], chosen: list[str], path: Path, result: str | None) -> None:
    """Draws one result of the chosen runs over their epochs."""
    from scena.plots import draw_curves

    names = _names(runs)
    shown = [run for run in runs if names[str(run.directory)] in chosen]
    known = list(dict.fromkeys(name for run in shown for row in run.history for name in row if name != "epoch"))
    best = [run.best_key for run in shown if run.best_key]
    name = result or next((name for name in (*best, "val_loss", "loss") if name in known), "loss")
    if name not in known:
        raise ParamsError(f"no run has the result {name!r}; there are: {', '.join(known) or 'none'}")
    curves = []
    for run in shown:
        points = [(row["epoch"], row[name]) for row in run.history if name in row]
        curves.append((names[str(run.directory)], [x for x, _ in points], [y for _, y in points]))
    draw_curves(path, curves, title=name, labels=("epoch", name))
    print(f"{path}: {name} of {len(curves)} runs", file=sys.stderr)


def _names(runs: list[Any]) -> dict[str, str]:
    """Directories without what all have in common."""
    paths = [str(run.directory) for run in runs]
    common = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths]) if paths else ""
    return {path: os.path.relpath(path, common) for path in paths}


def _cell(name: str, value: Any, shown: Any) -> str:
    if name == "duration" and value is not None:
        minutes, seconds = divmod(round(value), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}"
    return str(shown(value))


def _write_csv(path: str, columns: list[str], rows: list[list[str]]) -> None:
    if path == "-":
        csv.writer(sys.stdout).writerows([columns, *rows])
        return
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
