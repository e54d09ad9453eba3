"""Runs that differ in nothing but their seed, folded into one group with mean, spread and interval of each result."""

import hashlib
import json
import os
from dataclasses import dataclass, field

from scena.data.params import DataPipelineParams
from scena.evaluation.statistics.student import Summary, summarize
from scena.experiments.run_table import RUN_ONLY, shown
from scena.experiments.stored_run import FINISHED, StoredRun, flag_name
from scena.training.params import TrainerParams

SEED = "trainer.random_seed"
BEST = "best"
Identity = dict[str, str]
"""What a run is apart from its seed: parameters, code, versions and amount of data, as text."""


@dataclass
class RunGroup:
    """Runs that differ in their seed only."""

    identity: Identity
    scenario: str
    runs: list[StoredRun] = field(default_factory=list)
    """Those that count: finished, one for each seed."""
    unfinished: list[StoredRun] = field(default_factory=list)
    repeated: list[StoredRun] = field(default_factory=list)
    """Finished runs with the seed of another one, which would count twice."""

    @property
    def name(self) -> str:
        """The folder that the runs have in common, or the directory of the only one."""
        paths = [str(run.directory) for run in self.runs or self.unfinished]
        return paths[0] if len(paths) == 1 else os.path.commonpath(paths)

    @property
    def best_key(self) -> str | None:
        """The name of what selects the best model."""
        return next((run.best_key for run in self.runs if run.best_key), None)

    def results(self) -> list[str]:
        """The names of results, the best value first."""
        names = dict.fromkeys(name for run in self.runs for name in run.results)
        return [*([BEST] if self.best_key else []), *names]

    def values(self, name: str) -> list[float]:
        """A result of each run: the best value, or that of the last epoch."""
        found = [run.best if name == BEST else run.results.get(name) for run in self.runs]
        return [value for value in found if value is not None]

    def summary(self, name: str) -> Summary | None:
        """A result over the runs; None if no run has it."""
        values = self.values(name)
        return summarize(values) if values else None


def group_runs(runs: list[StoredRun]) -> list[RunGroup]:
    """The groups, in the order of their first runs."""
    groups: dict[str, RunGroup] = {}
    for run in runs:
        identity = identity_of(run)
        key = json.dumps([run.scenario, identity], sort_keys=True)
        group = groups.setdefault(key, RunGroup(identity, run.scenario))
        if run.status != FINISHED:
            group.unfinished.append(run)
        elif run.params.get(SEED) in [other.params.get(SEED) for other in group.runs]:
            group.repeated.append(run)
        else:
            group.runs.append(run)
    return list(groups.values())


def identity_of(run: StoredRun) -> Identity:
    """Everything about a run that its results may depend on, apart from its seed."""
    params = {name: value for name, value in run.params.items() if name not in RUN_ONLY and affects_results(name)}
    first = run.history[0] if run.history else {}
    return {
        **{name: json.dumps(value, sort_keys=True) for name, value in params.items()},
        **{f"version of {name}": version for name, version in run.versions.items() if name != "python"},
        # an unfinished run may have no export yet, and no epoch
        **({"code": hashlib.sha256(json.dumps(run.code, sort_keys=True).encode()).hexdigest()[:8]} if run.code else {}),
        **({"steps of an epoch": shown(first["step"] / first["epoch"])} if "step" in first else {}),
        **({"changed on resume": changed} if (changed := _changed_on_resume(run)) else {}),
    }


def _changed_on_resume(run: StoredRun) -> str:
    """What the stored parameters, which are the last ones, do not show: those that a part of the training had before."""
    found = []
    for entry in run.resumes:
        flags = {flag_name(tuple(path.split("."))): values for path, values in entry.get("changes", {}).items()}
        changes = [f"{flag} {old} → {new}" for flag, (old, new) in flags.items() if affects_results(flag)]
        if changes := [*changes, *entry.get("code", [])]:
            found.append(f"at step {entry.get('step')}: {', '.join(changes)}")
    return "; ".join(found)


def differences(groups: list[RunGroup]) -> list[str]:
    """The entries of their identities in which groups differ."""
    names = dict.fromkeys(name for group in groups for name in group.identity)
    return [name for name in names if len({group.identity.get(name) for group in groups}) > 1]


def affects_results(flag: str) -> bool:
    """Whether the results of a training may depend on a stored parameter; only Scena's own can say that they do not."""
    head, _, rest = flag.partition(".")
    first = rest.partition(".")[0]
    if head == "trainer":
        found = TrainerParams.__params__.get(first)
    elif head in ("train", "val"):
        found = DataPipelineParams.__params__.get(first)
    else:
        found = next((one for one in TrainerParams.__params__.values() if one.flat and one.root_name == head), None)
    return found is None or found.affects_results


def notes(groups: list[RunGroup]) -> list[str]:
    """What a reader of the table must know about runs that do not count."""
    lines = []
    for group in groups:
        lines += [
            f"{run.directory} has the seed {run.params.get(SEED)} of another run of its group, so it does not count."
            for run in group.repeated
        ]
    if left := [str(run.directory) for group in groups for run in group.unfinished]:
        are = "run is not finished and does" if len(left) == 1 else "runs are not finished and do"
        lines.append(f"{len(left)} {are} not count: {', '.join(left[:3])}{', …' if len(left) > 3 else ''}.")
    return lines
