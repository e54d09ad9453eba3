"""The journal of a run that was trained without a tracker, written from what the run has stored; and what came after a training."""

import os
from functools import partial
from pathlib import Path
from typing import Any

from scena.storage.checksums import file_checksum
from scena.storage.run_layout import BEST, HISTORY_FILE, JOURNAL_FILE, MEDIA, PARAMS_FILE, REPORT, TENSORBOARD, TRACKING
from scena.training.directory import locked, run_identity
from scena.training.trackers.event_media import StoredMedia, stored_media
from scena.training.trackers.media import kind_of_data, store_data
from scena.training.trackers.recorder import Recorder
from scena.training.trackers.values import from_history, tracked_params


def complete_journal(
    directory: Path, history: list[dict[str, Any]], scenario: str, params: dict[str, Any], *, finished: bool
) -> None:
    """Writes the journal of a run if it has none, and adds a report that was made after the training.

    Args:
        history: the values of each epoch.
        scenario: the scenario's name.
        params: its parameters by the names of their flags.
        finished: whether the training has ended.

    Raises:
        TrainingError: the run is being trained.
    """
    path = directory / TRACKING / JOURNAL_FILE
    late = finished and (directory / REPORT).exists()
    if path.exists() and not late:
        return
    with locked(directory):
        if not path.exists():
            aside = path.with_name(f".{path.name}.new")
            aside.unlink(missing_ok=True)
            recorder = _recorder(aside, directory, scenario, params)
            _fill(recorder, directory, history, finished=finished)
            recorder.close()
            aside.rename(path)
        if late:
            recorder = _recorder(path, directory, scenario, params)
            recorder.select_last()
            recorder.artifact(REPORT, REPORT)
            recorder.close()


def _recorder(path: Path, directory: Path, scenario: str, params: dict[str, Any]) -> Recorder:
    identity = run_identity(directory) or f"scena-{file_checksum(directory / PARAMS_FILE)}"
    return Recorder(path, identity, scenario, directory.absolute().name, lambda: tracked_params(params))


def _fill(recorder: Recorder, directory: Path, history: list[dict[str, Any]], *, finished: bool) -> None:
    """Numbers of each epoch, and what its validations have shown, in the order of their steps."""
    times, media = _times(directory, history), stored_media(directory / TENSORBOARD)
    recorder.begin(times[0])
    for (values, step), time in zip(from_history(history), times[1:], strict=True):
        while media and media[0].step < step:
            _record_media(recorder, directory, media.pop(0))
        recorder.points(values, step, time)
    for one in media:
        _record_media(recorder, directory, one)
    if finished:
        for name in (BEST, HISTORY_FILE):
            if (directory / name).exists():
                recorder.artifact(name, name)
        recorder.end(times[-1])


def _record_media(recorder: Recorder, directory: Path, media: StoredMedia) -> None:
    kind = kind_of_data(media.data)
    assert kind is not None
    write = partial(store_data, media.data, directory / TRACKING / MEDIA, media.key, media.step)
    recorder.data(media.key, kind, media.step, write, media.time)


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
