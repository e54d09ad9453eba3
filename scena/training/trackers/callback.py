"""The callback that writes the journal, and keeps a process for each service that is sent to."""

import logging
import socket
from functools import partial
from typing import Any

from scena import __version__
from scena.model.tensorboard import TensorBoardData
from scena.storage.code_fingerprints import noted_imports
from scena.storage.run_layout import BEST, HISTORY_FILE, JOURNAL_FILE, MEDIA, REPORT, TRACKING
from scena.training.callbacks.base import Kind, Tracker
from scena.training.callbacks.history import HistoryWriter
from scena.training.directory import read_resumes, run_identity
from scena.training.trackers.media import kind_of_data, store_data
from scena.training.trackers.params import JournalParams, TrackerServiceParams, services_of
from scena.training.trackers.process import SenderProcess
from scena.training.trackers.recorder import Recorder
from scena.training.trackers.sender import SenderStatus
from scena.training.trackers.system_load import LoadSampler
from scena.training.trackers.values import flag_names, from_history, typed_values

logger = logging.getLogger(__name__)

WAIT = 10.0
"""Seconds to wait for a service at the end of a training, if it can be reached."""


class JournalTracker(Tracker):
    """Records what the services get. A service that is slow or down costs the training nothing: it never talks to one."""

    settings: JournalParams

    def __init__(self, settings: JournalParams) -> None:
        super().__init__(settings)
        self._senders: list[SenderProcess] = []
        self._problems: dict[str, str] = {}
        self._waiting: list[tuple[str, TensorBoardData, int]] = []
        self._sampler: LoadSampler | None = None
        self._begun = False

    def set_run(self, run: Any) -> None:
        super().set_run(run)
        for service in self.settings.services:
            service.check_ready()
        self._folder = run.directory / TRACKING
        self._recorder = Recorder(
            self._folder / JOURNAL_FILE,
            run_identity(run.directory),
            run.scenario.name(),
            run.directory.absolute().name,
            lambda: typed_values(run.params),
        )

    def state(self) -> dict[str, Any]:
        self._record_data()
        return self._recorder.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._recorder.restore(state)

    def reset(self) -> None:
        """Starts the journal with the epochs before the run got its first tracker, if there were any; keeps one that is there."""
        history = self.run.callback(HistoryWriter)
        if self.run.resumed_from is not None and history is not None:
            for values, step in from_history(history.rows):
                self._recorder.points(values, step)

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self._recorder.begin()
        self._recorder.tags(self._tags())

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        if not self._begun:  # a training that fails in its first step leaves nothing behind in a tracker
            self._begun = True
            self._start_senders()
            self._sampler = LoadSampler(lambda load: self._recorder.load(load, self.run.progress.step))

    def log(self, values: dict[str, float], step: int, kind: Kind) -> None:
        self._recorder.points({f"{kind}/{name}": value for name, value in values.items()}, step)
        self._wake()

    def log_data(self, data: dict[str, TensorBoardData], step: int, kind: Kind) -> None:
        # recorded after the numbers of this step, which decide to which branch it belongs
        self._waiting += [(f"{kind}/{name}", value, step) for name, value in data.items()]

    def on_validation(self, logs: dict[str, float]) -> None:
        super().on_validation(logs)
        self._record_data()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        super().on_epoch_end(epoch, logs)
        self._record_data()
        self._replace_killed_senders()
        for sender in self._senders:
            self._tell(sender.name, sender.status())

    def close(self) -> None:
        self._record_data()
        if self._sampler is not None:
            self._sampler.stop()
            self._sampler = None

    def on_exported(self) -> None:
        self._recorder.begin()
        inside = self.run.directory
        for name, path in (
            (BEST, self.run.paths.best),
            (HISTORY_FILE, inside / HISTORY_FILE),
            (REPORT, inside / REPORT),
        ):
            if path.exists() and path.is_relative_to(inside):
                self._recorder.artifact(name, str(path.relative_to(inside)))
        self._recorder.end()
        if not self._senders:
            self._start_senders()
        self._replace_killed_senders()
        for sender in self._senders:
            self._tell_end(sender.name, sender.finish(WAIT))

    def release(self) -> None:
        self.close()
        for sender in self._senders:
            sender.finish(0)
        self._recorder.close()

    def _record_data(self) -> None:
        waiting, self._waiting = self._waiting, []
        for key, data, step in waiting:
            kind = kind_of_data(data)
            if kind is not None:
                self._recorder.data(key, kind, step, partial(store_data, data, self._folder / MEDIA, key, step))
        if waiting:
            self._wake()

    def _tags(self) -> dict[str, str]:
        own = {"scena.version": __version__, "scena.host": socket.gethostname()}
        resumes = read_resumes(self.run.directory)
        flags = flag_names(self.run.params) if resumes else {}
        for number, entry in enumerate(resumes, 1):
            changes = "; ".join(
                f"{flags.get(path, path)}: {old} → {new}" for path, (old, new) in entry.get("changes", {}).items()
            )
            own[f"scena.resumed.{number}"] = f"at step {entry.get('step')}{': ' if changes else ''}{changes}"[:5000]
        return own

    def _start_senders(self) -> None:
        services = services_of(list(self.settings.services))
        self._senders = [self._sender(name, params) for name, params in services.items()]

    def _replace_killed_senders(self) -> None:
        """Starts those again that were killed, for example by a system without memory; one that has given up stays as it is."""
        services = services_of(list(self.settings.services))
        for number, sender in enumerate(self._senders):
            if sender.died():
                logger.warning(
                    "The process that sends to the tracker %s was killed; another one continues.", sender.name
                )
                sender.finish(0)
                self._senders[number] = self._sender(sender.name, services[sender.name])

    def _sender(self, name: str, params: TrackerServiceParams) -> SenderProcess:
        return SenderProcess(self.run.directory, name, params, noted_imports())

    def _wake(self) -> None:
        for sender in self._senders:
            sender.wake()

    def _tell(self, name: str, status: SenderStatus) -> None:
        before = self._problems.get(name, "")
        if status.problem and not before:
            logger.warning(
                "The tracker %s cannot be reached: %s. The training continues; its values are kept and sent later.",
                name,
                status.problem.rstrip("."),
            )
        elif before and not status.problem and status.waiting >= 0:
            logger.info("The tracker %s can be reached again.", name)
        self._problems[name] = status.problem

    def _tell_end(self, name: str, status: SenderStatus) -> None:
        if status.problem:
            logger.warning(
                "The tracker %s does not have all values yet (%s). `scena track %s` sends the rest.",
                name,
                status.problem.rstrip("."),
                self.run.directory,
            )
        elif status.waiting:
            logger.info(
                "The tracker %s gets the last values from a process that continues. `scena track %s` shows whether it has all of them.",
                name,
                self.run.directory,
            )
        else:
            logger.info("The tracker %s has all values%s", name, "".join(f": {url}" for url in status.urls[-1:]))
