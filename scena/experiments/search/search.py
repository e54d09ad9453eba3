"""Runs a search: trials as processes over slots, their values reported to the study; resumes after a kill."""

import contextlib
import json
import logging
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scena.experiments.schedulers.base import Job, MakeChannel, Running, Slot, local_channel
from scena.experiments.search.space import SearchSpace, Value
from scena.experiments.search.study import draw
from scena.experiments.search.trial import METRIC, SOCKET, VALUES
from scena.experiments.sheets.command_lines import note_command, resolve, resume_words
from scena.experiments.sheets.experiment import INTERRUPTED, last_line
from scena.experiments.sheets.run_registry import RunRegistry
from scena.experiments.stored_run import read_history, read_run
from scena.storage.run_layout import LOGS, TRIALS

logger = logging.getLogger(__name__)

DIRECTORY, PRUNED = "directory", "pruned"


@dataclass
class RunningTrial:
    """A trial whose process runs."""

    trial: Any
    chosen: dict[str, Value]
    directory: Path
    values: dict[int, float] = field(default_factory=dict)
    """Epoch -> value, as reported to the study."""
    pruned: bool = False
    key: str | None = None
    """The name of the value in the run's history."""


class Search:
    """The trials of a study, run by a scheduler.

    Args:
        study: Optuna's study, with its sampler and pruner.
        space: what varies.
        command: `scena train SCENARIO` with the flags that all trials have.
        output: where trials, logs and locks go.
        python: the Python that trials run in.
        trials: how many trials the study should have in all.
        metric: the name of the value to search by; None for the model's own.
        own_storage: whether no other search keeps trials in this study.
        make_channel: creates the channel on which a trial reports; None: values are read from its history when it has ended.
    """

    def __init__(
        self,
        study: Any,
        space: SearchSpace,
        command: list[str],
        output: Path,
        python: str,
        trials: int,
        metric: str | None = None,
        own_storage: bool = True,
        make_channel: MakeChannel | None = local_channel,
    ) -> None:
        self.study, self.space, self.command = study, space, command
        self.output, self.python, self.trials, self.metric = output, python, trials, metric
        self.make_channel = make_channel
        self.registry = RunRegistry(output / "locks")
        self.running: dict[str, RunningTrial] = {}
        self.counts: dict[str, int] = {"complete": 0, "pruned": 0, "failed": 0, "stopped": 0}
        self._logged: set[int] = set()
        self._unfinished = self._find_unfinished(own_storage)

    def _find_unfinished(self, own_storage: bool) -> list[Any]:
        """Unfinished trials of a killed search: those in this folder, or without a folder."""
        left = []
        for trial in self.study.trials:
            directory = trial.user_attrs.get(DIRECTORY)
            mine = Path(directory).parent == self._folder() if directory is not None else own_storage
            if trial.state.name == "RUNNING" and mine:
                left.append(trial)
        return left

    def _folder(self) -> Path:
        return (self.output / TRIALS).absolute()

    # ---- what the scheduler asks for -----------------------------------------------------------------------------------

    def next_job(self, slot: Slot) -> Job | None:
        """A trial that was left unfinished, or a new one."""
        from optuna.trial import Trial, TrialState

        for frozen in list(self._unfinished):
            if (lock := self.registry.lock(_name(frozen.number))) is None:
                if frozen.number not in self._logged:
                    self._logged.add(frozen.number)
                    logger.warning("Trial %d: waiting for its earlier process, which still runs", frozen.number)
                continue  # its process still runs, or another search in this folder works on it
            self._unfinished.remove(frozen)
            if self.study.get_trials(deepcopy=False)[frozen.number].state.name == "RUNNING":
                return self._job(Trial(self.study, frozen._trial_id), lock)
            os.close(lock)
        while self._has_more():
            trial = self.study.ask()
            if trial.number >= self.trials:  # another machine has asked for the last one at the same moment
                trial.set_user_attr("error", "one more than requested")
                self.study.tell(trial.number, state=TrialState.FAIL)
                return None
            if (lock := self.registry.lock(_name(trial.number))) is not None:
                return self._job(trial, lock)
        return None

    def waits(self) -> bool:
        """Whether earlier processes of some trials have not ended yet."""
        return bool(self._unfinished)

    def _has_more(self) -> bool:
        states = [trial.state.name for trial in self.study.get_trials(deepcopy=False)]
        return len(states) - states.count("WAITING") < self.trials

    def _job(self, trial: Any, lock: int) -> Job:
        name = _name(trial.number)
        directory = self._folder() / name
        trial.set_user_attr(DIRECTORY, str(directory))
        chosen = draw(trial, self.space)
        frozen = self.study.trials[trial.number]
        self.running[name] = RunningTrial(
            trial, chosen, directory, dict(frozen.intermediate_values), bool(frozen.user_attrs.get(PRUNED))
        )
        words = [*self.command, *self.space.words(chosen), f"--trainer.output_dir={directory}"]
        command = resolve(resume_words(words, directory), self.python)
        log = self.output / LOGS / f"{name}.log"
        note_command(log, command)
        job = Job(name, command, log, {"SCENA_RUN_ID": name}, False, [lock])
        if self.make_channel is not None:
            job.channel, address, inherited = self.make_channel()
            job.inherited += inherited
            job.secret = address.rpartition(":")[2]
            job.environment |= {SOCKET: address, VALUES: json.dumps(chosen)}
            job.environment |= {METRIC: self.metric} if self.metric is not None else {}
        return job

    def started(self, running: Running) -> None:
        """Logs the values of a trial."""
        own = self.running[running.job.key]
        values = ", ".join(
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in own.chosen.items()
        )
        how = "resumed" if "resume" in running.job.words else "started"
        logger.info("Trial %d %s on %s: %s", own.trial.number, how, running.slot.name, values)

    def lost(self, running: Running) -> None:
        """Puts a trial back into the queue, to resume it on another node."""
        own = self.running.pop(running.job.key)
        self._unfinished.append(self.study.trials[own.trial.number])

    def heard(self, running: Running) -> bool:
        """Reads the values that a trial reports and answers whether it should end."""
        channel = running.job.channel
        try:
            text = channel.recv(65536)
        except OSError:  # also BlockingIOError: there is nothing more after its end
            return False
        if not text:
            return False
        own = self.running[running.job.key]
        for line in text.splitlines():
            report = json.loads(line)
            epoch, value, own.key = int(report["epoch"]), float(report["value"]), str(report["key"])
            if epoch not in own.values:  # a resumed trial may report an epoch again, with the same value
                own.values[epoch] = value
                own.trial.report(value, epoch)
            own.pruned = own.pruned or bool(own.trial.should_prune())
            if own.pruned:
                own.trial.set_user_attr(PRUNED, True)
            with contextlib.suppress(OSError):  # it has ended
                channel.sendall(json.dumps({"stop": own.pruned}).encode() + b"\n")
        return True

    def ended(self, running: Running, status: int) -> None:
        """Reports the result of a trial to the study; a stopped one stays open and is resumed next time."""
        own = self.running.pop(running.job.key)
        number = own.trial.number
        if status in INTERRUPTED or (running.stop_sent and status != 0):
            self.counts["stopped"] += 1
            logger.info("Trial %d was stopped", number)
            return
        from optuna.trial import TrialState

        self._complete(own)
        best = best_of(own.values, self.study.direction.name)
        if status != 0 or best is None:
            how = (
                f"failed with status {status}: {last_line(running.job.log)}" if status != 0 else "has reported no value"
            )
            own.trial.set_user_attr("error", how)
            self.study.tell(number, state=TrialState.FAIL)
            self.counts["failed"] += 1
            logger.error("Trial %d %s (see %s)", number, how, running.job.log)
        elif own.pruned:
            self.study.tell(number, state=TrialState.PRUNED)
            self.counts["pruned"] += 1
            logger.info("Trial %d was ended early after epoch %d: %.6g", number, max(own.values), best)
        else:
            self.study.tell(number, best)
            self.counts["complete"] += 1
            logger.info("Trial %d: %.6g (%.1f s)", number, best, running.seconds)

    def _complete(self, own: RunningTrial) -> None:
        """Adds values from the history that a trial could not report because the search was killed."""
        history = read_history(own.directory)
        key = self.metric or own.key or (read_run(own.directory).best_key if history else None)
        for row in history:
            epoch = int(row["epoch"])
            if key in row and epoch not in own.values and math.isfinite(row[key]):
                own.values[epoch] = row[key]
                own.trial.report(row[key], epoch)

    def tick(self, running: list[Running]) -> None:
        """Nothing to do; a view may override it."""


def best_of(values: dict[int, float], direction: str) -> float | None:
    """The best of the values of a trial's epochs."""
    finite = [value for value in values.values() if math.isfinite(value)]
    if not finite:
        return None
    return max(finite) if direction == "MAXIMIZE" else min(finite)


def _name(number: int) -> str:
    return f"{number:04}"
