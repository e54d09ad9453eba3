"""Runs a search: trials as processes over slots, their values reported to the study; resumes after a kill."""

import contextlib
import json
import logging
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scena import faults
from scena.evaluation.statistics.student import summarize
from scena.experiments.schedulers.base import Job, MakeChannel, Running, Slot, local_channel
from scena.experiments.search.space import SearchSpace, Value
from scena.experiments.search.study import draw
from scena.experiments.search.trial import METRIC, SOCKET, VALUES
from scena.experiments.sheets.command_lines import note_command, resolve, resume_words
from scena.experiments.sheets.experiment import INTERRUPTED, last_line
from scena.experiments.sheets.run_registry import RunRegistry
from scena.experiments.stored_run import FINISHED, read_history, read_run
from scena.storage.run_layout import LOGS, PARAMS_FILE, TRIALS

logger = logging.getLogger(__name__)

DIRECTORY, PRUNED, SEEDS = "directory", "pruned", "seeds"


@dataclass
class SeededTrial:
    """A trial that runs once for each seed."""

    trial: Any
    lock: int
    """Held until the trial has ended; each of its processes inherits a copy."""
    left: list[int]
    """Seeds whose runs have not been started."""
    values: dict[int, float] = field(default_factory=dict)
    """Seed -> the best value of its run."""


@dataclass
class RunningTrial:
    """A trial whose process runs, or one of its seeds."""

    trial: Any
    chosen: dict[str, Value]
    directory: Path
    lock: int | None = None
    """Held until its end is in the study: its process lets go of it earlier, when another search would still find the trial open. None
    for one of several seeds, for which `SeededTrial` holds it."""
    values: dict[int, float] = field(default_factory=dict)
    """Epoch -> value, as reported to the study."""
    pruned: bool = False
    key: str | None = None
    """The name of the value in the run's history."""
    seed: int | None = None
    """The seed of this run, if the trial has several."""
    unread: bytes = b""
    """The beginning of a report whose end has not arrived yet."""

    def release(self) -> None:
        """Lets go of its lock."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


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
        seeds: each trial runs once with each of these, and its value is the mean; empty: once, as the flags say.
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
        seeds: Sequence[int] = (),
    ) -> None:
        self.study, self.space, self.command = study, space, command
        self.output, self.python, self.trials, self.metric = output, python, trials, metric
        self.make_channel = make_channel
        self.registry = RunRegistry(output / "locks")
        self.running: dict[str, RunningTrial] = {}
        self.counts: dict[str, int] = {"complete": 0, "pruned": 0, "failed": 0, "stopped": 0}
        self.seeds = list(seeds)
        self._seeded: dict[int, SeededTrial] = {}
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
        from optuna.trial import Trial

        for seeded in self._seeded.values():
            if seeded.left:
                return self._job(seeded.trial, seeded.lock, seeded.left.pop(0))
        for frozen in list(self._unfinished):
            if (lock := self.registry.lock(_name(frozen.number))) is None:
                if frozen.number not in self._logged:
                    self._logged.add(frozen.number)
                    logger.warning("Trial %d: waiting for its earlier process, which still runs", frozen.number)
                continue  # its process still runs, or another search in this folder works on it
            self._unfinished.remove(frozen)
            if (job := self._first_job(Trial(self.study, frozen._trial_id), lock)) is not None:
                return job
        while self._has_more():
            trial = self.study.ask()
            lock = self.registry.lock(_name(trial.number))
            if lock is not None and (job := self._first_job(trial, lock)) is not None:
                return job
        return None

    def _first_job(self, trial: Any, lock: int) -> Job | None:
        """The job of a trial, or of the first of its seeds that is not done.

        None if there is nothing to do: all seeds are done, as after a kill; another search has ended the trial; or it is one too many.
        """
        from optuna.trial import TrialState

        stored = self.study.get_trials(deepcopy=False)[trial.number]
        # another search may have asked for the last one at the same moment; one of both died, or not
        surplus = trial.number >= self.trials and DIRECTORY not in stored.user_attrs
        if surplus and not stored.state.is_finished():
            trial.set_user_attr("error", "one more than requested")
            self.study.tell(trial.number, state=TrialState.FAIL)
        if surplus or stored.state.is_finished():
            os.close(lock)
            return None
        if not self.seeds:
            return self._job(trial, lock)
        seeded = self._seeded[trial.number] = SeededTrial(trial, lock, [])
        for seed in self.seeds:
            directory = self._folder() / _name(trial.number) / _seed_name(seed)
            if (directory / PARAMS_FILE).is_file() and read_run(directory).status == FINISHED:
                own = RunningTrial(trial, {}, directory, seed=seed)
                self._complete(own)
                if (best := best_of(own.values, self.study.direction.name)) is not None:
                    seeded.values[seed] = best
                    continue
            seeded.left.append(seed)
        if not seeded.left:
            self._end_seeded(seeded)
            return None
        return self._job(trial, lock, seeded.left.pop(0))

    def waits(self) -> bool:
        """Whether earlier processes of some trials have not ended yet."""
        return bool(self._unfinished)

    def _has_more(self) -> bool:
        states = [trial.state.name for trial in self.study.get_trials(deepcopy=False)]
        return len(states) - states.count("WAITING") < self.trials

    def _job(self, trial: Any, lock: int, seed: int | None = None) -> Job:
        name = _name(trial.number)
        directory = self._folder() / name
        trial.set_user_attr(DIRECTORY, str(directory))
        if seed is not None:
            name, directory = f"{name}-{_seed_name(seed)}", directory / _seed_name(seed)
        chosen = draw(trial, self.space)
        frozen = self.study.trials[trial.number]
        known = dict(frozen.intermediate_values) if seed is None else {}
        pruned = bool(frozen.user_attrs.get(PRUNED))
        self.running[name] = RunningTrial(
            trial, chosen, directory, lock if seed is None else None, known, pruned, seed=seed
        )
        own = [f"--trainer.random_seed={seed}"] if seed is not None else []
        words = [*self.command, *self.space.words(chosen), *own, f"--trainer.output_dir={directory}"]
        command = resolve(resume_words(words, directory), self.python)
        log = self.output / LOGS / f"{name}.log"
        note_command(log, command)
        job = Job(name, command, log, {"SCENA_RUN_ID": name}, False, [os.dup(lock)])
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
        seed = f" (seed {own.seed})" if own.seed is not None else ""
        logger.info("Trial %d%s %s on %s: %s", own.trial.number, seed, how, running.slot.name, values)

    def lost(self, running: Running) -> None:
        """Puts a trial back into the queue, to resume it on another node."""
        own = self.running.pop(running.job.key)
        own.release()
        if own.seed is None:
            self._unfinished.append(self.study.trials[own.trial.number])
        elif own.trial.number in self._seeded:
            self._seeded[own.trial.number].left.append(own.seed)

    def heard(self, running: Running) -> bool:
        """Reads the values that a trial reports and answers whether it should end."""
        channel = running.job.channel
        try:
            text = channel.recv(faults.smaller("report", 65536))
        except OSError:  # also BlockingIOError: there is nothing more after its end
            return False
        if not text:
            return False
        own = self.running[running.job.key]
        *lines, own.unread = (own.unread + text).split(b"\n")  # a line may arrive in pieces
        for line in lines:
            report = json.loads(line)
            epoch, value, own.key = int(report["epoch"]), float(report["value"]), str(report["key"])
            if epoch not in own.values:  # a resumed trial may report an epoch again, with the same value
                self._note(own, epoch, value)
            own.pruned = own.pruned or (own.seed is None and bool(own.trial.should_prune()))
            if own.pruned:
                own.trial.set_user_attr(PRUNED, True)
            with contextlib.suppress(OSError):  # it has ended
                channel.sendall(json.dumps({"stop": own.pruned}).encode() + b"\n")
        return True

    def ended(self, running: Running, status: int) -> None:
        """Reports the result of a trial to the study; a stopped one stays open and is resumed next time."""
        own = self.running.pop(running.job.key)
        try:
            self._record(own, running, status)
        finally:
            own.release()

    def _record(self, own: RunningTrial, running: Running, status: int) -> None:
        number = own.trial.number
        if own.seed is not None and number not in self._seeded:
            return  # the trial has failed with another seed
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
            self._forget(number)
            self.counts["failed"] += 1
            logger.error("Trial %d %s (see %s)", number, how, running.job.log)
        elif own.seed is not None:
            seeded = self._seeded[number]
            seeded.values[own.seed] = best
            logger.info("Trial %d with seed %d: %.6g (%.1f s)", number, own.seed, best, running.seconds)
            if len(seeded.values) == len(self.seeds):
                self._end_seeded(seeded)
        elif own.pruned:
            self.study.tell(number, state=TrialState.PRUNED)
            self.counts["pruned"] += 1
            logger.info("Trial %d was ended early after epoch %d: %.6g", number, max(own.values), best)
        else:
            self.study.tell(number, best)
            self.counts["complete"] += 1
            logger.info("Trial %d: %.6g (%.1f s)", number, best, running.seconds)

    def _end_seeded(self, seeded: SeededTrial) -> None:
        """Reports the mean over the seeds of a trial to the study."""
        number, values = seeded.trial.number, [seeded.values[seed] for seed in self.seeds]
        found = summarize(values)
        seeded.trial.set_user_attr(SEEDS, {str(seed): seeded.values[seed] for seed in self.seeds})
        self.study.tell(number, found.mean)
        self._forget(number)
        self.counts["complete"] += 1
        spread = f" ± {found.deviation:.2g}" if found.deviation is not None else ""
        logger.info("Trial %d: %.6g%s over %d seeds", number, found.mean, spread, found.n)

    def _forget(self, number: int) -> None:
        """Starts no more seeds of a trial, and lets its lock go with its last process."""
        if (seeded := self._seeded.pop(number, None)) is not None:
            os.close(seeded.lock)

    def _complete(self, own: RunningTrial) -> None:
        """Adds values from the history that a trial could not report because the search was killed."""
        history = read_history(own.directory)
        key = self.metric or own.key or (read_run(own.directory).best_key if history else None)
        for row in history:
            epoch = int(row["epoch"])
            if key in row and epoch not in own.values and math.isfinite(row[key]):
                self._note(own, epoch, row[key])

    def _note(self, own: RunningTrial, epoch: int, value: float) -> None:
        """Keeps the value of an epoch; one of several seeds is not a value of the trial."""
        own.values[epoch] = value
        if own.seed is None:
            own.trial.report(value, epoch)

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


def _seed_name(seed: int) -> str:
    return f"seed-{seed}"
