"""A stored run: parameters, status, history and best value, read without TensorFlow or its scenario."""

import csv
import fcntl
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scena.display import html_table, number
from scena.errors import ExperimentError
from scena.scenario.params import ScenarioBaseParams
from scena.storage.checksums import warn_if_changed
from scena.storage.json_text import number_or_nan
from scena.storage.run_layout import (
    EXPORT_FILE,
    HISTORY_FILE,
    LOCK_FILE,
    PARAMS_FILE,
    STATE_FILE,
    RunPaths,
    run_paths,
    step_of,
)
from scena.training.directory import read_resumes
from scena.training.history import History
from scena.training.params import TrainerParams
from scena.training.pipelines import ImagePipelines, TrainerPipelineParams, TrainValParams

RUNNING, FINISHED, UNFINISHED = "running", "finished", "unfinished"
NO_RESULTS = ("epoch", "step", "learning_rate", "seconds")
"""Columns of a history that are not results."""


@dataclass(repr=False)
class StoredRun:
    """What is known about a run."""

    directory: Path
    scenario: str
    status: str
    epochs: int
    """Epochs to train."""
    history: History
    params: dict[str, Any]
    """Flag name -> value."""
    best_key: str | None = None
    best: float | None = None
    best_epoch: int | None = None
    results: dict[str, float] = field(default_factory=dict)
    """The values of the last epoch."""
    code: dict[str, Any] = field(default_factory=dict)
    """Fingerprints of the code of its last export."""
    versions: dict[str, str] = field(default_factory=dict)
    """The versions of Scena, Keras and the rest that it started with."""
    resumes: list[dict[str, Any]] = field(default_factory=list)
    """At which step it was resumed, and what was changed then."""

    def __repr__(self) -> str:
        best = f", best {self.best_key} {number(self.best)}" if self.best_key else ""
        return f"StoredRun({self.directory}: {self.status}, {self.epoch}/{self.epochs} epochs{best})"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        best = [("best", f"{self.best_key} {number(self.best)} in epoch {self.best_epoch}")] if self.best_key else []
        facts = [("scenario", self.scenario), ("status", self.status), ("epochs", f"{self.epoch}/{self.epochs}"), *best]
        return html_table([*facts, *((k, number(v)) for k, v in self.results.items())], title=str(self.directory))

    @property
    def epoch(self) -> int:
        """Epochs trained so far."""
        return int(self.history[-1]["epoch"]) if self.history else 0

    @property
    def seconds(self) -> float:
        """How long its epochs took."""
        return sum(row.get("seconds", 0.0) for row in self.history)


def find_runs(folders: list[Path]) -> list[Path]:
    """The directories of runs among and below these paths, sorted by name."""
    found: dict[Path, None] = {}
    for folder in folders:
        if not folder.is_dir():
            raise ExperimentError(f"There is no directory '{folder}'.")
        found.update(dict.fromkeys(_search(folder)))
    return list(found)


def _search(folder: Path, depth: int = 8) -> Iterator[Path]:
    if (folder / PARAMS_FILE).is_file():
        yield folder
        return
    try:
        inner = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except PermissionError:
        return
    for name in inner:
        if depth and not name.startswith("."):
            yield from _search(folder / name, depth - 1)


def read_run(directory: Path) -> StoredRun:
    """Reads what a run's directory holds.

    Raises:
        ExperimentError: it is not the directory of a run, or its parameters cannot be read.
    """
    description = _json(directory / PARAMS_FILE)
    trainer = description.get("trainer")
    if not isinstance(trainer, dict):
        raise ExperimentError(f"{directory} is not the directory of a run: {PARAMS_FILE} is missing or damaged.")
    history = read_history(directory)
    epochs = trainer.get("epochs")
    paths = run_paths(directory, trainer)
    best = _json(paths.best / EXPORT_FILE)
    result = best.get("result", {})
    code = (_json(paths.export / EXPORT_FILE) or best).get("code")
    versions = description.get("versions")
    key = result.get("best") if isinstance(result, dict) else None
    last = history[-1] if history else {}
    return StoredRun(
        directory,
        str(description.get("scenario", "")),
        _status(directory, trainer, history, paths),
        epochs if isinstance(epochs, int) else 0,
        History(history),
        flat_values(trainer),
        key if isinstance(key, str) else None,
        number_or_nan(result[key]) if isinstance(key, str) and key in result else None,
        result.get("epoch") if isinstance(key, str) else None,
        {name: value for name, value in last.items() if name not in NO_RESULTS},
        code if isinstance(code, dict) else {},
        versions if isinstance(versions, dict) else {},
        read_resumes(directory),
    )


def read_history(directory: Path) -> list[dict[str, float]]:
    """The rows of a run's history, empty if there is none yet; missing values are skipped."""
    try:
        data = (directory / HISTORY_FILE).read_bytes()
        warn_if_changed(directory / HISTORY_FILE, data)
        rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
        found = [{name: float(text) for name, text in row.items() if name and text} for row in rows]
        if not all("epoch" in row for row in found):
            raise ValueError("a row names no epoch")
        return found
    except FileNotFoundError:
        return []
    except (OSError, ValueError, csv.Error) as error:
        raise ExperimentError(f"Cannot read {directory / HISTORY_FILE}: {error}.") from error


def _status(directory: Path, trainer: dict[str, Any], history: list[dict[str, float]], paths: RunPaths) -> str:
    if is_running(directory):
        return RUNNING
    if not history:
        return UNFINISHED
    epochs = trainer.get("epochs")
    ended = (isinstance(epochs, int) and history[-1]["epoch"] >= epochs) or _stopped(paths.checkpoint)
    if not ended:
        return UNFINISHED
    exported = _json(paths.export / EXPORT_FILE).get("result", {}).get("step")
    return FINISHED if not trainer.get("export_final", True) or exported == history[-1].get("step") else UNFINISHED


def _stopped(folder: Path) -> bool:
    """Whether the training was stopped before its last epoch, by its last checkpoint."""
    found = {step: path for path in folder.glob("*") if (step := step_of(path.name)) is not None}
    progress = _json(found[max(found)] / STATE_FILE).get("progress", {}) if found else {}
    return bool(isinstance(progress, dict) and progress.get("stopped") and progress.get("finished"))


def is_running(directory: Path) -> bool:
    """Whether a process holds the lock of a run's directory.

    It reads the system's list of locks instead of taking the lock, which a trainer that starts at this moment would find taken.
    """
    path = directory / LOCK_FILE
    try:
        inode = path.stat().st_ino
    except OSError:
        return False
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return _is_locked(path)
    return any(
        line.split()[5].rpartition(":")[2] == str(inode) for line in locks if " FLOCK " in line and "->" not in line
    )


def _is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _json(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
        value = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return {}
    if path.name != STATE_FILE:  # a user may have edited it
        warn_if_changed(path, data)
    return value if isinstance(value, dict) else {}


CLASS = "class"


def flat_values(trainer: dict[str, Any]) -> dict[str, Any]:
    """The stored parameters of a run as flag name -> value; the value of a class choice is the name of the class."""
    return dict(_flat(trainer, ()))


def _flat(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and (CLASS in value or not path):
        if path:
            yield flag_name(path), value[CLASS]
        for key, item in value.items():
            if key != CLASS:
                yield from _flat(item, (*path, key))
    elif isinstance(value, list) and value and all(isinstance(item, dict) and CLASS in item for item in value):
        classes = [item[CLASS] for item in value]
        yield flag_name(path), classes
        for index, item in enumerate(value):
            own = item[CLASS] if classes.count(item[CLASS]) == 1 else str(index)  # as on the command line
            yield flag_name((*path, own)), item[CLASS]
            for key, inner in item.items():
                if key != CLASS:
                    yield from _flat(inner, (*path, own, key))
    else:
        yield flag_name(path), value


def flag_name(path: tuple[str, ...]) -> str:
    """The flag of a path of the tree; flat fields are at the root."""
    if path[0] in ("scenario", "gen") and len(path) > 1:
        flat = _FLAT[path[0]].get(path[1])
        return ".".join([flat, *path[2:]] if flat else path)
    field = TrainerParams.__params__.get(path[0])
    return ".".join(path if field is not None and field.flat else ("trainer", *path))


def _flat_names(*classes: Any) -> dict[str, str]:
    return {name: field.root_name for cls in classes for name, field in cls.__params__.items() if field.flat}


_FLAT = {
    "scenario": _flat_names(ScenarioBaseParams),
    "gen": _flat_names(TrainValParams, TrainerPipelineParams, ImagePipelines),
}
