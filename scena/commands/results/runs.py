"""`scena runs [DIR…]`: tables of runs that fit the terminal, the parameters that differ between two, and their curves."""

import csv
import os
import sys
from pathlib import Path
from typing import Any

from scena.commands.command import Command
from scena.commands.output import check_file, check_plot, print_table
from scena.commands.results.run_groups import show_groups
from scena.display import one_line, terminal_width
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
    params: list[str] | None = param(
        None, help="the parameters to show, such as lr model.graph (default: those that differ)"
    )
    group: bool = param(
        False, help="fold runs that differ only in their seed into mean, standard deviation and 95 % interval"
    )
    wide: bool = param(False, help="show all columns, even if they do not fit the terminal")
    csv: str | None = param(None, help="write all columns to this file (- for standard output)")
    diff: bool = param(False, help="of two runs: show each parameter that differs")
    plot: Path | None = param(None, help="plot a result over the epochs of each run into this file")
    result: str | None = param(
        None, help="with plot: the result (default: what the runs call best, or val_loss or loss)"
    )

    def __post_init__(self) -> None:
        if self.diff and self.plot is not None:
            raise ParamsError("--diff shows parameters, --plot results: choose one of them")
        if self.result is not None and self.plot is None:
            raise ParamsError("--result is what to plot, so it needs --plot FILE")
        if self.group and (self.diff or self.params is not None):
            raise ParamsError("--group shows the parameters in which groups differ; use it without --diff and --params")


class Runs(Command):
    """Lists runs by scenario: status, epochs, best value, duration, and the parameters in which they differ.

    On a terminal as many columns as fit are shown; into a pipe or with --wide, all of them.
    """

    name = "runs"
    options: RunsOptions

    def run(self) -> None:
        options = self.options
        check_file("--csv", None if options.csv is None else Path(options.csv))
        check_plot(options.plot)
        from scena.experiments.stored_run import find_runs, read_run

        runs = [read_run(path) for path in find_runs(options.directories)]
        if options.diff:
            _diff(runs)
        else:
            _table(runs, options, ", ".join(map(str, options.directories)))


def _table(runs: list[Any], options: RunsOptions, where: str) -> None:
    from scena.experiments.run_table import (
        FIXED,
        by_scenario,
        differing,
        filter_rows,
        full_names,
        make_rows,
        result_names,
        shown,
        sort_rows,
    )

    if not runs:
        print(f"There are no runs in {where}.", file=sys.stderr)
        return
    names = _names(runs)
    rows = filter_rows(make_rows(runs, names), options.filter)
    if options.sort is not None and not options.group:
        rows = sort_rows(rows, options.sort, reverse=options.reverse)
    if options.group:
        listed = {row["run"] for row in rows}
        show_groups([run for run in runs if names[str(run.directory)] in listed], options)
        return
    if options.plot is not None:
        _plot(runs, [row["run"] for row in rows], options.plot, options.result)
    chosen = None if options.params is None else full_names(make_rows(runs), options.params, "--params")
    if options.csv is not None:
        more = chosen if chosen is not None else differing(runs)
        columns = list(dict.fromkeys([*FIXED, *result_names(runs), *more]))
        _write_csv(options.csv, columns, [[shown(row.get(name)) for name in columns] for row in rows])
        return
    width = None if options.wide else terminal_width()
    for number, (scenario, group) in enumerate(by_scenario(rows).items()):
        listed = {row["run"] for row in group}
        of_group = [run for run in runs if names[str(run.directory)] in listed]
        print("\n" * bool(number) + _heading(scenario, len(group), width))
        _print_group(of_group, group, chosen, width)


def _print_group(runs: list[Any], rows: list[dict[str, Any]], chosen: list[str] | None, width: int | None) -> None:
    """Prints the runs of one scenario: the columns that fit into the width, and how many there are beside them."""
    from scena.experiments.run_table import (
        FIXED,
        WIDEST_CELL,
        differing,
        fitting,
        result_names,
        short_names,
        shortened,
        shown,
    )

    epochs = "trainer.epochs"  # shown beside the epoch: 3/10
    differ = [name for name in differing(runs) if name != epochs]
    differ.sort(key=lambda name: not all(name in run.params for run in runs))  # those of some runs only stand last
    first = ["run", "best", *chosen, *FIXED] if chosen is not None else ["run", "status", "best", "epoch", "duration"]
    wanted = list(dict.fromkeys([*first, *(differ if chosen is None else []), *result_names(runs), "best epoch"]))
    columns = list(dict.fromkeys([*FIXED, *wanted]))
    columns.sort(key=lambda name: name == "best epoch" or name in result_names(runs))
    keys = {run.best_key for run in runs if run.best_key}
    titles = short_names(rows) | ({"best": f"best {next(iter(keys))}"} if len(keys) == 1 else {})
    cells = {name: [_cell(name, row.get(name), shown) for row in rows] for name in columns}
    cells["epoch"] = [f"{row['epoch']}/{row.get(epochs) or '?'}" for row in rows]
    if width is not None:
        for name in columns:
            limit = max(20, width // 3) if name == "run" else WIDEST_CELL
            titles[name] = shortened(titles[name], limit)
            cells[name] = [shortened(one_line(cell), limit) for cell in cells[name]]
        widths = {name: max(map(len, [titles[name], *cells[name]])) for name in columns}
        columns = fitting(widths, wanted, width)
    print_table(
        [titles[name] for name in columns],
        list(zip(*(cells[name] for name in columns), strict=True)),
        wide=width is None,
    )
    if hidden := len(wanted) - len(columns):
        print(shortened(f"… {hidden} more: --params, --csv, --wide", width or 80))


def _heading(scenario: str, count: int, width: int | None) -> str:
    from scena.experiments.run_table import shortened

    runs = f" ({count} run{'s' if count != 1 else ''})"
    name = one_line(scenario) or "unknown scenario"
    return (name if width is None else shortened(name, max(width - len(runs), 10))) + runs


def _diff(runs: list[Any]) -> None:
    from scena.experiments.run_table import differing, make_rows, shown

    if len(runs) != 2:
        raise ParamsError(f"--diff takes two runs, received {len(runs)}")
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
