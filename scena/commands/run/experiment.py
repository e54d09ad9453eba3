"""`scena experiment SHEET`: carries out the runs that a sheet describes."""

import sys
import time
from pathlib import Path
from typing import Any

from scena.commands.run.live_runs import choose_scheduler, take_scheduler
from scena.commands.scenario_argument import set_up_console
from scena.commands.usage import print_usage
from scena.params import Params, ParamsError, param, parse_options

USAGE = """usage: scena experiment SHEET [--gpus N… | --cpus N…] [--flags]

Carries out the runs of an .xlsx, .csv or .yaml sheet, one on each device at a time. Run again, it goes on with what is not
finished and leaves out what is done. Ctrl-C stops the runs; their state is saved.
  --gpus N…          the GPUs to use; each run sees its own one only
  --cpus N           runs at once on the CPU (default: 1); several numbers name the slots: `--cpus 0 1` is the same as `--cpus 2`
  --per_device N     runs at once on each device (default: 1)
  --cluster ray[://HOST:PORT]   run on a Ray cluster; --run_cpus N and --run_gpus N say what each run needs (default: 1 and 0)
  --scheduler NAME   what carries out the runs: local, ray, or that of an installed plugin; its options are --scheduler.…
  --output DIR       where results, logs and records go (default: the sheet's name with .runs)
  --sheet NAME       which sheet of an xlsx file (default: the first)
  --only ID…         only these runs
  --python EXE       the Python, of another environment for example, for `scena` and scripts
  --dry_run          print the command lines and start nothing
  --update           write the results of each run's last epoch to a new sheet (beside a .csv or .yaml: to NAME.results.csv)
  --yes              do not ask before CLEANUP removes directories"""


class ExperimentOptions(Params):
    """How to carry out a sheet."""

    gpus: list[int] = param([], help="the GPUs to use")
    cpus: list[int] = param([], help="how many runs at once on the CPU, or the numbers of their slots")
    per_device: int = param(1, ge=1, help="runs at once on each device")
    output: Path | None = param(None, help="where results, logs and records go")
    sheet: str | None = param(None, help="which sheet of an xlsx file")
    only: list[str] = param([], help="only these runs, by ID")
    python: str | None = param(None, help="the Python for `scena` and scripts")
    cluster: str | None = param(None, help="a Ray cluster to run on: ray, or ray://HOST:PORT")
    run_cpus: float = param(1.0, ge=0, help="CPUs of the cluster that each run needs")
    run_gpus: float = param(0.0, ge=0, help="GPUs of the cluster that each run needs")
    dry_run: bool = param(False, help="print the command lines and start nothing")
    update: bool = param(False, help="write results to a new sheet")
    yes: bool = param(False, help="do not ask before directories are removed")


def run(arguments: list[str]) -> int:
    """Carries out a sheet."""
    if not arguments or any(argument in ("-h", "--help") for argument in arguments):
        print_usage(USAGE)
        return 0 if arguments else 2
    chosen, arguments = take_scheduler(arguments)
    options, rest = parse_options(ExperimentOptions, arguments)
    if len(rest) != 1 or rest[0].startswith("-"):
        wrong = next((word for word in rest if word.startswith("-")), None)
        raise ParamsError(
            f"{wrong} does not exist; see scena experiment --help"
            if wrong
            else "name one sheet: scena experiment SHEET"
        )
    set_up_console()
    from scena.experiments.sheets.command_lines import find_python
    from scena.experiments.sheets.experiment import Experiment
    from scena.experiments.sheets.files import read_sheet

    sheet = Path(rest[0])
    scheduler = choose_scheduler(chosen, options)
    runs = _chosen(read_sheet(sheet, options.sheet), options.only)
    output = options.output if options.output is not None else sheet.with_suffix(".runs")
    experiment = Experiment(runs, output, find_python(options.python, sys.executable))
    if options.dry_run:
        _print_plan(experiment)
        return 0
    _clean(experiment, options.yes)
    try:
        _carry_out(experiment, scheduler.create())
    finally:
        if options.update:
            from scena.experiments.sheets.experiment import result_rows, write_results

            print(f"Results: {write_results(sheet, result_rows(experiment.runs))}", file=sys.stderr)
    return _report(experiment)


def _chosen(runs: list[Any], only: list[str]) -> list[Any]:
    known = [run.id for run in runs]
    if missing := [name for name in only if name not in known]:
        raise ParamsError(f"--only {missing[0]}: the sheet has no run of this ID; it has {', '.join(known)}")
    return [run for run in runs if not only or run.id in only]


def _print_plan(experiment: Any) -> None:
    from scena.experiments.sheets.command_lines import shown

    for path in experiment.to_clean():
        print(f"# CLEANUP: rm -r {path}")
    for planned in experiment.runs:
        if planned.open:
            print(shown(planned.command))
        else:
            print(f"# {planned.run.id}: {planned.state}{f' ({planned.note})' if planned.note else ''}")


def _clean(experiment: Any, yes: bool) -> None:
    paths = experiment.to_clean()
    if paths and not yes:
        listed = "\n".join(f"  {path}" for path in paths)
        if not sys.stdin.isatty():
            raise ParamsError(f"CLEANUP would remove these directories; agree with --yes:\n{listed}")
        answer = input(f"CLEANUP removes these directories with all results in them:\n{listed}\nRemove them? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            raise ParamsError("nothing was removed, and nothing was started; unset CLEANUP to keep the directories")
    experiment.clean()


def _carry_out(experiment: Any, scheduler: Any) -> None:
    from scena.commands.run.live_runs import RunProgress, clock, live_table

    progress = {planned.run.id: RunProgress(planned.directory) for planned in experiment.runs}
    started = time.monotonic()
    running: list[Any] = []

    def table() -> Any:
        from rich.table import Table

        done = sum(planned.state == "done" for planned in experiment.runs)
        failed = sum(planned.state == "failed" for planned in experiment.runs)
        waiting = sum(planned.open for planned in experiment.runs)
        title = f"{done} done, {failed} failed, {len(running)} running, {waiting} waiting; {clock(time.monotonic() - started)}"
        shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for column in ("run", "on", "epoch", "last values", "time", "still"):
            shown.add_column(column)
        for one in running:
            own = progress[one.job.key]
            own.refresh()
            shown.add_row(one.job.key, one.slot.name, own.epoch, own.values, clock(one.seconds), clock(own.eta))
        return shown

    with live_table(table) as draw:

        def tick(now: list[Any]) -> None:
            running[:] = now
            draw()

        experiment.tick = tick
        scheduler.run(experiment)


def _report(experiment: Any) -> int:
    states = [planned.state for planned in experiment.runs]
    counted = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    print(f"{len(states)} runs: {', '.join(counted)}.", file=sys.stderr)
    bad = [planned for planned in experiment.runs if planned.state not in ("done", "skipped")]
    for planned in bad:
        print(f"  {planned.run.id}: {planned.state}: {planned.note}", file=sys.stderr)
    return 1 if bad else 0
