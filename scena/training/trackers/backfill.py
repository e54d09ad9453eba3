"""The journal of a run that was trained without a tracker, written from what the run has stored."""

import os
from pathlib import Path
from typing import Any

from scena.storage.checksums import file_checksum
from scena.storage.run_layout import BEST, HISTORY_FILE, JOURNAL_FILE, PARAMS_FILE, TRACKING
from scena.training.directory import locked, read_json, run_identity
from scena.training.trackers.recorder import Recorder
from scena.training.trackers.values import flat_values, from_history


def fill_journal(directory: Path, history: list[dict[str, Any]], scenario: str, *, finished: bool) -> None:
    """Writes the journal of a run, unless it has one.

    Args:
        history: the values of each epoch.
        scenario: the scenario's name.
        finished: whether the training has ended.

    Raises:
        TrainingError: the run is being trained.
    """
    path = directory / TRACKING / JOURNAL_FILE
    if path.exists():
        return
    with locked(directory):
        aside = path.with_name(f".{path.name}.new")
        aside.unlink(missing_ok=True)
        identity = run_identity(directory) or f"scena-{file_checksum(directory / PARAMS_FILE)}"
        raw = read_json(directory / PARAMS_FILE).get("trainer", {})
        recorder = Recorder(aside, identity, scenario, directory.absolute().name, lambda: flat_values(raw))
        times = _times(directory, history)
        recorder.begin(times[0])
        for (values, step), time in zip(from_history(history), times[1:], strict=True):
            recorder.points(values, step, time)
        if finished:
            for name in (BEST, HISTORY_FILE):
                if (directory / name).exists():
                    recorder.artifact(name, name)
            recorder.end(times[-1])
        recorder.close()
        aside.rename(path)


def _times(directory: Path, history: list[dict[str, Any]]) -> list[int]:
    """About when the training began and each epoch ended, in milliseconds: the last one ended when its row was written."""
    try:
        end = os.stat(directory / HISTORY_FILE).st_mtime
    except OSError:
        end = os.stat(directory / PARAMS_FILE).st_mtime
    times = [end]
    for row in reversed(history):
        times.append(times[-1] - float(row.get("seconds") or 0.0))
    return [int(1000 * time) for time in reversed(times)]
