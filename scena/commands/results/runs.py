"""`scena runs DIR…`: a table of runs, and the comparison of two of them."""

import csv
import os
import sys
from pathlib import Path
from typing import Any

from scena.commands.places import check_file
from scena.commands.usage import print_usage
from scena.params import Params, ParamsError, param, parse_options
from scena.storage.run_layout import RUNS

USAGE = """usage: scena runs [DIR…] [--sort NAME] [--filter CONDITION…] [--csv FILE]
       scena runs RUN RUN --compare

Lists the runs in these directories (default: runs) with status, epoch, best value, duration, last results, and the
parameters in which they differ.
  --sort NAME [--reverse]   by a column, a result or a parameter: best, duration, val_loss, model.graph, …
  --filter CONDITION…       only some: status=finished 'val_acc>0.9' model.graph!=CNN run~digits
  --params NAME…            which parameters to show (default: those that differ)
  --csv FILE                write all columns to a file (- for standard output)
  --compare                 of two runs: each parameter that differs"""


class RunsOptions(Params):
    """What to list."""

    sort: str | None = param(None, help="the column, result or parameter to sort by")
    reverse: bool = param(False, help="the largest first")
    filter: list[str] = param([], help="conditions, such as status=finished or val_acc>0.9")
    params: list[str] | None = param(None, help="the parameters to show (default: those that differ)")
    csv: str | None = param(None, help="write the table to this file (- for standard output)")
    compare: bool = param(False, help="show the parameters that differ between two runs")


def run(arguments: list[str]) -> int:
    """Prints the table."""
    if any(argument in ("-h", "--help") for argument in arguments):
        print_usage(USAGE)
        return 0
    options, places = parse_options(RunsOptions, arguments)
    if wrong := [place for place in places if place.startswith("--")]:
        from scena.params.errors import did_you_mean

        known = [f"--{name}" for name in RunsOptions.__params__]
        raise ParamsError(f"{wrong[0]} does not exist{did_you_mean(wrong[0], known)}; see scena runs --help")
    check_file("--csv", None if options.csv is None else Path(options.csv))
    from scena.experiments.stored_run import find_runs, read_run

    directories = find_runs([Path(place) for place in places or [RUNS]])
    if options.compare:
        return _compare([read_run(path) for path in directories])
    _table([read_run(path) for path in directories], options, ", ".join(places or [RUNS]))
    return 0


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
    from scena.commands.output import print_table

    print_table([title if name == "best" else name for name in columns], cells)


def _compare(runs: list[Any]) -> int:
    from scena.experiments.run_table import differing, make_rows, shown

    if len(runs) != 2:
        raise ParamsError(f"--compare takes two runs, received {len(runs)}")
    from scena.commands.output import print_table

    names = _names(runs)
    first, second = make_rows(runs)
    rows = [[name, shown(first.get(name)), shown(second.get(name))] for name in differing(runs)]
    if not rows:
        print("The parameters are the same.")
        return 0
    print_table(["parameter", *(names[str(run.directory)] for run in runs)], rows)
    return 0


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
