"""Runs a sheet: decides what is left to do, records how each run ends, and collects the results."""

import csv
import io
import logging
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from scena.errors import ExperimentError
from scena.experiments.schedulers.base import Job, Running, Slot
from scena.experiments.sheets.command_lines import (
    is_training,
    note_command,
    only_more_epochs,
    output_directory,
    resolve,
    resume_words,
)
from scena.experiments.sheets.run_registry import DONE, FAILED, STARTED, STOPPED, Entry, RunRegistry
from scena.experiments.sheets.sheet import Flag, SheetRun
from scena.experiments.stored_run import NO_RESULTS, read_history, read_run
from scena.storage.durable import write_file
from scena.storage.run_layout import CHECKPOINTS, HISTORY_FILE, LOG_FILE, LOGS, PARAMS_FILE, RUNS
from scena.training.stopping import TIME_IS_UP

logger = logging.getLogger(__name__)

SKIPPED, CHANGED, WAITING, RUNNING = "skipped", "changed", "waiting", "running"
INTERRUPTED = (130, 143, TIME_IS_UP)
_TAIL = 4000
_ERROR = re.compile(r"scena [a-z-]+: error: ")


@dataclass
class PlannedRun:
    """A run of the sheet and what to do with it."""

    run: SheetRun
    words: list[str]
    """Its command line, with a directory for its results."""
    command: list[str]
    """What is executed: the same, or `scena resume`."""
    directory: Path | None
    log: Path
    state: str
    entry: Entry | None = None
    slot: str = ""
    note: str = ""
    resumed: bool = False

    @property
    def open(self) -> bool:
        """Whether there is anything to do."""
        return self.state == WAITING


class Experiment:
    """The runs of a sheet, run by a scheduler; results, logs and records go to `output`."""

    remedy = "give it a new ID, or set CLEANUP"
    """What to do about a run whose parameters have changed."""

    def __init__(self, runs: list[SheetRun], output: Path, python: str, remedy: str | None = None) -> None:
        self.remedy = remedy or self.remedy
        self.output = output
        self.python = python
        self.registry = RunRegistry(output / "state")
        self.runs = [self._plan(run) for run in runs]
        self._by_key = {planned.run.id: planned for planned in self.runs}

    def _plan(self, run: SheetRun) -> PlannedRun:
        words = run.words()
        directory = output_directory(words)
        if directory is None and is_training(words):
            directory = self.output / RUNS / run.id
            words += Flag("trainer.output_dir", [str(directory)]).on_command_line()
        log = self.output / LOGS / f"{run.id}.log"
        planned = PlannedRun(run, words, words, directory, log, WAITING, self.registry.read(run.id))
        if run.skip:
            planned.state = SKIPPED
            return planned
        try:
            planned.command = resolve(words, self.python)
        except ExperimentError as error:
            raise ExperimentError(f"{run.where}: {error}") from None
        if run.cleanup:
            if directory is None:
                raise ExperimentError(f"{run.where}: CLEANUP needs the run's directory: add a parameter output_dir.")
            return planned
        self._decide(planned)
        return planned

    def _decide(self, planned: PlannedRun) -> None:
        words, directory = planned.words, planned.directory
        entry = planned.entry = self.registry.read(planned.run.id)
        if entry is not None and entry.words != words and not only_more_epochs(entry.words, words):
            planned.state = CHANGED
            planned.note = f"its parameters have changed since it was started; {self.remedy}"
        elif entry is not None and entry.status == DONE and entry.words == words:
            planned.state, planned.note = DONE, f"{entry.seconds:.0f} s"
        elif directory is not None:
            going = resume_words(words, directory)
            planned.resumed = going != words
            planned.command = resolve(going, self.python)

    # ---- cleaning ----------------------------------------------------------------------------------------------------

    def to_clean(self) -> list[Path]:
        """The directories that CLEANUP would remove."""
        wanted = [planned.directory for planned in self.runs if planned.open and planned.run.cleanup]
        found = [path for path in wanted if path is not None and os.path.lexists(path)]
        for path in found:
            _check_removable(path)
        return found

    def clean(self) -> None:
        """Removes these directories and the records of their runs."""
        self.to_clean()
        for planned in self.runs:
            if planned.open and planned.run.cleanup and planned.directory is not None:
                handle = self.registry.lock(planned.run.id)
                if handle is None:
                    raise ExperimentError(f"Run {planned.run.id} still runs: its directory cannot be removed.")
                if planned.directory.exists():
                    shutil.rmtree(planned.directory)
                    logger.info("Removed %s", planned.directory)
                self.registry.remove(planned.run.id)
                planned.entry = None
                os.close(handle)

    # ---- what the scheduler asks for -----------------------------------------------------------------------------------

    def next_job(self, slot: Slot) -> Job | None:
        """The next run that waits."""
        for planned in self.runs:
            if not planned.open:
                continue
            handle = self.registry.lock(planned.run.id)
            if handle is None:
                if not planned.note:
                    planned.note = "waiting for its earlier process, which still runs"
                    logger.warning("Run %s: %s", planned.run.id, planned.note)
                continue
            planned.note = ""
            self._decide(planned)  # again: another command may have run it since the sheet was read
            if planned.state in (DONE, CHANGED):
                os.close(handle)
                continue
            attempts = planned.entry.attempts + 1 if planned.entry is not None else 1
            directory = None if planned.directory is None else str(planned.directory)
            planned.entry = Entry(planned.words, STARTED, attempts=attempts, directory=directory)
            self.registry.write(planned.run.id, planned.entry)
            note_command(planned.log, planned.command)
            environment = {"SCENA_RUN_ID": planned.run.id}
            whole = planned.run.script[0] != "scena"
            return Job(planned.run.id, planned.command, planned.log, environment, whole, [handle])
        return None

    def waits(self) -> bool:
        """Whether earlier processes of some runs have not ended yet."""
        return any(planned.open for planned in self.runs)

    def started(self, running: Running) -> None:
        """Records the slot of a run."""
        planned = self._by_key[running.job.key]
        planned.state, planned.slot = RUNNING, running.slot.name
        how = "resumed" if planned.resumed else "started"
        logger.info("Run %s %s on %s", planned.run.id, how, running.slot.name)

    def ended(self, running: Running, status: int) -> None:
        """Records how a run ended."""
        planned = self._by_key[running.job.key]
        entry = planned.entry
        assert entry is not None
        entry.exit, entry.seconds = status, round(running.seconds, 3)
        entry.status = DONE if status == 0 else STOPPED if status in INTERRUPTED or running.stop_sent else FAILED
        self.registry.write(planned.run.id, entry)
        planned.state = entry.status
        if entry.status == DONE:
            planned.note = f"{entry.seconds:.0f} s"
            logger.info("Run %s done in %.1f s", planned.run.id, entry.seconds)
        elif entry.status == STOPPED:
            planned.note = "was stopped; the same command resumes it"
            logger.info("Run %s was stopped after %.1f s", planned.run.id, entry.seconds)
        else:
            how = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
            planned.note = f"{how}: {last_line(planned.log)}"
            logger.error("Run %s %s: %s (see %s)", planned.run.id, how, last_line(planned.log), planned.log)

    def lost(self, running: Running) -> None:
        """Puts a run back into the queue; a training resumes from its checkpoint."""
        planned = self._by_key[running.job.key]
        planned.state, planned.slot = WAITING, ""
        self._decide(planned)

    def heard(self, running: Running) -> bool:
        """Runs of a sheet have no channel."""
        return False

    def tick(self, running: list[Running]) -> None:
        """Nothing to do; a view may override it."""


def last_line(log: Path) -> str:
    """The last line of a log that is not empty; the error of a Scena command, which may be followed by hints."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    output = [line.strip() for line in lines if line.strip() and not line.startswith("$ ")]
    # only the last attempt counts: each begins with its command
    attempt = lines[max((i for i, line in enumerate(lines) if line.startswith("$ ")), default=-1) + 1 :]
    if errors := [line.strip() for line in attempt if _ERROR.match(line)]:
        return errors[-1]
    return output[-1] if output else "no output"


def _check_removable(path: Path) -> None:
    """Refuses to remove a directory that is not that of a run: a wrong cell must not delete other files."""
    full = path.resolve()
    here = Path.cwd().resolve()
    if path.is_symlink() or not path.is_dir():
        raise ExperimentError(f"CLEANUP: {path} is not a directory.")
    if full == here or full in here.parents or full == Path.home().resolve():
        raise ExperimentError(f"CLEANUP: {path} holds the current or the home folder; it is not removed.")
    if any(path.iterdir()) and not any(
        (path / mark).exists() for mark in (PARAMS_FILE, CHECKPOINTS, HISTORY_FILE, LOG_FILE)
    ):
        raise ExperimentError(
            f"CLEANUP: {path} does not look like the directory of a run (it has no {PARAMS_FILE}); remove it yourself."
        )


Cell = str | int | float | None


def result_rows(runs: list[PlannedRun]) -> list[list[Cell]]:
    """A table with a heading and a row per run: ID, status, epoch, best value and all values of its last epoch."""
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
