"""`scena track RUN… --to mlflow`: brings trackers up to date with runs, those of finished trainings too."""

import os
import shlex
import time
from pathlib import Path

from scena.commands.command import Command, ImportOptions
from scena.commands.output import print_table
from scena.errors import ScenaError, TrainingError
from scena.params import Params, param
from scena.params.declare import short_name
from scena.storage.run_layout import PARAMS_FILE
from scena.training.trackers.params import TrackerServiceParams


class TrackOptions(ImportOptions):
    """Which runs, and where they go."""

    directories: list[Path] = param(required=True, positional="RUN", help="runs, or directories that hold some")


class TrackRoot(Params):
    """The trackers."""

    to: list[TrackerServiceParams] = param([], help="the trackers (default: those that each run was trained with)")


class Track(Command):
    """Sends to trackers what they do not have yet of some runs: values, parameters, images, and the best model.

    Each value is sent once, however often this is called. A run that was trained without a tracker is sent from its history.
    """

    name = "track"
    options: TrackOptions

    def root(self) -> TrackRoot:
        return TrackRoot()

    def run(self) -> int:
        from scena.experiments.stored_run import find_runs

        self.show_log()
        for service in self.params.to:
            service.check_ready()
        runs = find_runs(self.options.directories)
        if not runs:
            raise TrainingError(f"There are no runs in {', '.join(map(str, self.options.directories))}.")
        rows = [row for directory in runs for row in self._track(directory)]
        print_table(["run", "tracker", "result"], [row[:3] for row in rows])
        return max(int(row[3]) for row in rows)

    def _track(self, directory: Path) -> list[tuple[str, str, str, bool]]:
        """Sends one run; the rows of the table, each with whether it failed."""
        from scena.training.directory import read_json
        from scena.training.trackers.params import stored_services

        services = {short_name(type(service)): service for service in self.params.to} or stored_services(
            read_json(directory / PARAMS_FILE)
        )
        if not services:
            return [(str(directory), "", _why_none(directory), True)]
        rows = []
        for name, service in services.items():
            addresses = {} if self.params.to else service.foreign_addresses()
            if addresses:  # tokens of the environment would go there, too
                flags = " ".join(f"--to.{name}.{field} {shlex.quote(value)}" for field, value in addresses.items())
                rows.append(
                    (str(directory), name, f"repeat its stored address if you trust it: --to {name} {flags}", True)
                )
                continue
            try:
                result, failed = _send(directory, name, service)
            except ScenaError as error:
                result, failed = str(error), True
            rows.append((str(directory), name, result, failed))
        return rows


def _why_none(directory: Path) -> str:
    """Why nothing can be sent of a run without trackers: it cannot be read, or has none."""
    from scena.experiments.stored_run import read_run

    try:
        read_run(directory)
    except ScenaError as error:
        return str(error)
    return "it has no tracker: name one with --to"


def _send(directory: Path, name: str, service: TrackerServiceParams) -> tuple[str, bool]:
    from scena.experiments.stored_run import FINISHED, read_run
    from scena.training.trackers.backfill import complete_journal
    from scena.training.trackers.process import Report, create_sender, only_sender, status_file

    service.check_ready()
    run = read_run(directory)
    complete_journal(directory, run.history, run.scenario, run.params, finished=run.status == FINISHED)
    os.environ.update(service.environment())
    until = time.monotonic() + 1.0

    def wait(seconds: float) -> bool:
        time.sleep(seconds)
        return time.monotonic() < until

    with only_sender(directory, name, wait) as alone:
        if not alone:
            return "another process is sending to it", True
        sender = create_sender(directory, name, service)
        try:
            done = sender.catch_up()
        finally:
            sender.service.close()
            Report(status_file(directory, name))(sender.status)
    return ("up to date" if done else f"cannot be reached: {sender.status.problem}"), not done
