"""The results of a sheet's runs: the values of each run's last epoch, written to a new sheet or a CSV file."""

import csv
import io
from pathlib import Path

from scena.experiments.errors import ExperimentError
from scena.experiments.sheets.experiment import PlannedRun
from scena.experiments.stored_run import NO_RESULTS, read_history, read_run
from scena.storage.durable import write_file

Cell = str | int | float | None


def result_rows(runs: list[PlannedRun]) -> list[list[Cell]]:
    """A table: a heading, then a row per run with ID, status, epoch, best value and everything of its last epoch."""
    collected = [(run, *_results(run)) for run in runs]
    names = list(dict.fromkeys(name for _, last, _ in collected for name in last if name not in NO_RESULTS))
    rows: list[list[Cell]] = [["ID", "STATUS", "EPOCH", "SECONDS", "BEST", *names]]
    for run, last, best in collected:
        seconds = run.entry.seconds if run.entry is not None else None
        epoch = int(last["epoch"]) if "epoch" in last else None
        identity: Cell = int(run.run.id) if run.run.id.isdecimal() else run.run.id
        rows.append([identity, run.state, epoch, seconds, best, *(last.get(name) for name in names)])
    return rows


def _results(run: PlannedRun) -> tuple[dict[str, float], float | None]:
    if run.directory is None or not run.directory.is_dir():
        return {}, None
    try:
        history = read_history(run.directory)
        best = read_run(run.directory).best
    except ExperimentError:  # another program's directory: what there is of a history is enough
        history, best = read_history(run.directory), None
    return (history[-1] if history else {}), best


def write_results(path: Path, rows: list[list[Cell]]) -> str:
    """Adds the table to an xlsx file as a new sheet, or writes it beside another file; returns where it is."""
    if path.suffix.lower() in (".xlsx", ".xlsm"):
        from scena.experiments.sheets.xlsx import add_sheet

        name = add_sheet(path, "results", rows)
        return f"{path}, sheet {name!r}"
    target = path.with_name(f"{path.stem}.results.csv")
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["" if cell is None else cell for cell in row] for row in rows])
    write_file(target, text.getvalue())
    return str(target)
