"""`scena experiment SHEET`: carries out the runs that a sheet describes."""

import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from scena.commands.command import Command
from scena.commands.run.live_runs import SchedulerRoot, SlotOptions, carry_out_runs, report_groups, report_runs
from scena.params import ParamsError, param


class ExperimentOptions(SlotOptions):
    """How to carry out a sheet."""

    file: Path = param(required=True, positional="SHEET", help="an .xlsx, .csv or .yaml file")
    output: Path | None = param(None, help="where results, logs and records go (default: the sheet's name with .runs)")
    sheet: str | None = param(None, help="which sheet of an xlsx file (default: the first)")
    only: list[str] = param([], help="only these runs, by ID")
    python: str | None = param(None, help="the Python, of another environment for example, for `scena` and scripts")
    dry_run: bool = param(False, help="print the command lines, check the flags of trainings, and start nothing")
    update: bool = param(
        False,
        help="write the results of each run's last epoch to a new sheet (beside a .csv or .yaml: to NAME.results.csv)",
    )
    seeds: int | None = param(
        None, ge=1, help="run each training with this many seeds, derived from its random_seed (default: 0)"
    )
    yes: bool = param(False, help="do not ask before CLEANUP removes directories")


class RunSheet(Command):
    """Carries out the runs of a sheet, one on each device at a time.

    Run again, it resumes what is not finished and skips what is done. Ctrl-C stops the runs; their state is saved.
    """

    name = "experiment"
    options: ExperimentOptions

    def root(self) -> SchedulerRoot:
        return SchedulerRoot()

    def run(self) -> int:
        options = self.options
        self.show_log()
        from scena.experiments.sheets.command_lines import find_python
        from scena.experiments.sheets.experiment import Experiment
        from scena.experiments.sheets.files import read_sheet

        sheet = options.file
        scheduler = options.scheduler(self.params.scheduler if self.words else None)
        runs = _chosen(read_sheet(sheet, options.sheet), options.only)
        if options.seeds is not None:
            from scena.experiments.seeds import with_seeds

            runs = with_seeds(runs, options.seeds)
        output = options.output if options.output is not None else sheet.with_suffix(".runs")
        experiment = Experiment(runs, output, find_python(options.python, sys.executable))
        if options.dry_run:
            _print_plan(experiment)
            _check_flags(experiment)
            return 0
        _clean(experiment, options.yes)
        try:
            carry_out_runs(experiment, scheduler.create())
        finally:
            if options.update:
                from scena.experiments.sheets.experiment import result_rows, write_results

                print(f"Results: {write_results(sheet, result_rows(experiment.runs))}", file=sys.stderr)
        if options.seeds is not None:
            report_groups(experiment)
        return report_runs(experiment)


def _chosen(runs: list[Any], only: list[str]) -> list[Any]:
    known = [run.id for run in runs]
    if missing := [name for name in only if name not in known]:
        raise ParamsError(f"--only {missing[0]}: the sheet has no run of this ID; it has {', '.join(known)}")
    return [run for run in runs if not only or run.id in only]


def _print_plan(experiment: Any) -> None:
    for path in experiment.to_clean():
        print(f"# CLEANUP: rm -r {path}")
    for planned in experiment.runs:
        if planned.open:
            print(shlex.join(planned.command))
        else:
            print(f"# {planned.run.id}: {planned.state}{f' ({planned.note})' if planned.note else ''}")


_CHECK = "import sys; from scena.commands.main import main; sys.exit(main(sys.argv[1:], check_only=True))"


def _check_flags(experiment: Any) -> None:
    """Reads the flags of each training in a process of its own: the modules that one imports must not help another."""
    from scena.experiments.sheets.command_lines import is_training

    trainings = [planned for planned in experiment.runs if planned.open and is_training(planned.words)]

    def error_of(planned: Any) -> str:
        python, _, _, *words = planned.command  # PYTHON -m scena …
        done = subprocess.run([python, "-c", _CHECK, *words], capture_output=True, text=True, check=False)
        return done.stderr.partition("error: ")[2].strip() or done.stderr.strip() if done.returncode else ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = zip(trainings, pool.map(error_of, trainings), strict=True)
        wrong = [f"  {planned.run.id} ({planned.run.where}): {error}" for planned, error in errors if error]
    if wrong:
        raise ParamsError("\n".join([f"{len(wrong)} of {len(trainings)} trainings have wrong flags:", *wrong]))


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
