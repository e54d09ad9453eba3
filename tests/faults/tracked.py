"""What a tracker must hold of a training that was killed, fell back to an older checkpoint, and was resumed with another flag."""

import contextlib
import csv
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.harness import FLAGS, fingerprint, kill_until_finished
from tests.zygote import Zygote

Numbers = list[tuple[str, int, float]]
"""Key, step and value of all numbers of a tracker's run, in the order in which they came."""
OLDER = "8"
"""The step of the checkpoint to fall back to."""


def in_history(directory: Path) -> Numbers:
    """What a tracker must hold of a run whose epochs end with a validation: its history, epoch by epoch."""
    with (directory / "history.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    left_out = ("epoch", "step", "seconds")
    names = [name for name in rows[0] if name not in left_out]
    keys = [f"val/{name[4:]}" if name.startswith("val_") else f"train/{name}" for name in names]
    return [
        (key, int(row["step"]), float(row[name]))
        for row in rows
        for name, key in zip(names, keys, strict=True)
        if row[name]
    ]


def results(numbers: Numbers) -> Numbers:
    """Those of the training, without the load of the machine."""
    return [each for each in numbers if not each[0].startswith("system/")]


def check(numbers: Numbers, directory: Path) -> None:
    """Each number is there once, the steps of each key are in order, and none of the run's history is missing."""
    points = [(key, step) for key, step, _ in numbers]
    assert len(set(points)) == len(points), "a value is there twice"
    for key in {key for key, _ in points}:
        steps = [step for other, step in points if other == key]
        assert steps == sorted(steps), f"values of {key} are out of order"
    missing = set(in_history(directory)) - set(numbers)
    assert not missing, "values are missing or differ"


def unlike(expected: dict[str, Any], directory: Path) -> list[str]:
    """The parts of a tracked run that differ from a run without trackers."""
    found = fingerprint(directory)
    found["state"]["callbacks"].pop("JournalTracker")
    return [part for part, value in expected.items() if found[part] != value]


def live_through_everything(
    zygote: Zygote,
    run: Path,
    tracker: list[str],
    held: Callable[[], dict[str, Numbers]],
    expected: dict[str, Any],
    *,
    kills: int = 4,
    resume_flags: Callable[[], list[str]] = list,
    send: Callable[[], list[str]] = list,
) -> str:
    """Trains with kills; falls back to an older checkpoint, with a kill; then does so with another learning rate.

    Args:
        zygote: starts the processes.
        run: the directory of the training.
        tracker: the flags of the tracker.
        held: the numbers that the tracker holds, by the identity of its runs.
        expected: the fingerprint of a run without trackers.
        kills: how often to kill the first training.
        resume_flags: called before each resume; what has to be repeated.
        send: called before the tracker is brought up to date; what `scena track` needs.

    Returns:
        The identity of the run; that of the linked one is the same with `-1`.
    """
    chance = random.Random(7)
    keep = ["--trainer.keep_checkpoints", "50"]
    done = kill_until_finished(zygote, run, [*FLAGS, *keep, *tracker], chance, kills, resume_flags)
    catch_up(zygote, run, send())
    assert not unlike(expected, run)
    identity = str(json.loads((run / "trainer_params.json").read_text())["run"])
    first = held()
    assert list(first) == [identity]
    check(first[identity], run)

    back = ["resume", str(run), "--from", OLDER]
    done += kill_until_finished(zygote, run, [], chance, 1, resume_flags, start=[*back, *resume_flags()])
    catch_up(zygote, run, send())
    assert not unlike(expected, run)
    replayed = held()
    assert list(replayed) == [identity] and results(replayed[identity]) == results(first[identity])
    check(replayed[identity], run)

    other = ["--learning_rate.lr", "0.5"]
    done += kill_until_finished(
        zygote, run, [], chance, 1, lambda: [*resume_flags(), *other], start=[*back, *other, *resume_flags()]
    )
    catch_up(zygote, run, send())
    after = held()
    linked = f"{identity}-1"
    assert sorted(after) == [identity, linked] and results(after[identity]) == results(first[identity])
    ours = [each for each in in_history(run) if each not in first[identity]]
    assert ours and set(ours) <= set(after[linked]), "the linked run lacks values"
    assert all(step > int(OLDER) for _, step, _ in results(after[linked]))
    points = [(key, step) for key, step, _ in after[linked]]
    assert len(set(points)) == len(points), "a value of the linked run is there twice"
    print(f"kills: {dict(done)}")
    assert done.total() >= 3
    return identity


def catch_up(zygote: Zygote, run: Path, words: list[str]) -> None:
    """`scena track`, until it has sent everything; a sender that outlived a killed training may be at work."""
    log, until = run.with_suffix(".track"), time.monotonic() + 300
    while zygote.run("track", run, *words, log=log) != 0:
        assert time.monotonic() < until, log.read_text()
        _hurry(run)
        time.sleep(1)


def _hurry(run: Path) -> None:
    """Gives senders of this run an equal share of the processors, of which a busy machine leaves them next to nothing."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"scena.training.trackers.process" in words and str(run).encode() in words:
                os.setpriority(os.PRIO_PROCESS, int(process.name), 0)
                (process / "autogroup").write_text("0")
