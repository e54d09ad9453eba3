"""Starting, killing and comparing runs of `scena`."""

import csv
import hashlib
import json
import os
import random
import signal
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from tensorboard.compat.proto.event_pb2 import Event

from tests.zygote import Child, Zygote

SCENARIO = "tests.faults.survivor"
FLAGS = (
    "--trainer.epochs 5 --trainer.random_seed 11 --train.batch_size 8 --val.batch_size 16 --trainer.checkpoint_every 4steps "
    "--trainer.val_every_n 5steps --data.pre_proc.processors.Jitter.seconds 0.001 --train.num_processes 0 --val.num_processes 0"
).split()

SLOW = "--data.pre_proc.processors.Jitter.seconds 0.02"  # slow enough to be hit in the middle of an epoch
FAST = SLOW.replace("0.02", "0.001").split()


def flags(changes: str = "") -> list[str]:
    """The flags of the reference run with some of them changed, and others added."""
    words = changes.split()
    chosen = dict(zip(FLAGS[::2], FLAGS[1::2], strict=True)) | dict(zip(words[::2], words[1::2], strict=True))
    return [word for pair in chosen.items() for word in pair]


MOMENTS = ("at any time", "training", "step", "writing a checkpoint", "writing the best model", "exporting")


def kill_until_finished(
    zygote: Zygote,
    directory: Path,
    flags: list[str],
    rng: random.Random,
    kills: int,
    resume_flags: Callable[[], list[str]] = list,
    scenario: str = SCENARIO,
    start: list[str] | None = None,
) -> Counter[str]:
    """Runs a training that is killed at random moments and resumed until it ends; returns how often it was killed, and when.

    It begins with the command `start`, if that is given.
    """
    log = directory.with_suffix(".log")
    start = start or ["train", scenario, "--trainer.output_dir", str(directory), *flags]
    child = zygote.start(*start, log=log)
    done: Counter[str] = Counter()
    while True:
        moment = rng.choice(MOMENTS)
        if done.total() < kills:
            _wait_for(moment, child, directory, rng)
            child.kill()
        status = child.wait()
        if status == 0:
            return done
        assert status == -signal.SIGKILL, child.text
        done[moment] += 1
        there = (directory / "trainer_params.json").exists()  # else it was killed before there was a run
        child = zygote.start(*(["resume", str(directory), *resume_flags()] if there else start), log=log)


def _wait_for(moment: str, child: Child, directory: Path, rng: random.Random) -> None:
    if moment == "at any time":
        time.sleep(rng.uniform(0, 2))
        return
    child.wait_for("Training ")
    checkpoints = directory / "checkpoint"
    if moment == "training":
        time.sleep(rng.uniform(0, 1))
    elif moment == "step":
        before = _names(checkpoints)
        _poll(child, lambda: _names(checkpoints) > before and any(n.isdecimal() for n in _names(checkpoints) - before))
        time.sleep(rng.uniform(0, 0.2))
    elif moment == "writing a checkpoint":
        _poll(child, lambda: any(name.endswith(".new") for name in _names(checkpoints)))
        time.sleep(rng.choice([0, 0, rng.uniform(0, 0.004)]))
    elif moment == "writing the best model":
        _poll(child, (directory / ".best.new").exists)
        time.sleep(rng.uniform(0, 0.03))
    else:
        _poll(child, lambda: (directory / ".export.new").exists() or (directory / ".best.saved_model").exists())
        time.sleep(rng.uniform(0, 0.3))


def _names(directory: Path) -> set[str]:
    try:
        return set(os.listdir(directory))
    except FileNotFoundError:
        return set()


def _poll(child: Child, condition: Callable[[], bool]) -> None:
    while not condition() and child.is_alive():
        time.sleep(0.0005)


def fingerprint(directory: Path) -> dict[str, Any]:
    """All that must not differ between two runs: every tensor, every value, every scalar in TensorBoard. Exports must hold a SavedModel."""
    step = max(int(path.name) for path in (directory / "checkpoint").iterdir() if path.name.isdecimal())
    checkpoint = directory / "checkpoint" / str(step)
    state = json.loads((checkpoint / "state.json").read_text())
    state["callbacks"].pop("TensorBoardEvents", None)
    for row in state["callbacks"]["HistoryWriter"]["rows"]:
        row.pop("seconds", None)
    for leave_out in ("number", "environment", "run"):
        state.pop(leave_out)
    for entry in state["variables"]:
        entry.pop("path")  # Keras numbers them anew in each process
    with (directory / "history.csv").open(newline="") as file:
        history = [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]
    return {
        "tensors": hashlib.sha256((checkpoint / "tensors.safetensors").read_bytes()).hexdigest(),
        "state": state,
        "history": history,
        "best": _export(directory / "best"),
        "export": _export(directory / "export"),
        "scalars": scalars(directory / "tensorboard"),
    }


def scalars(directory: Path) -> dict[str, list[tuple[int, str]]]:
    """Every scalar in TensorBoard's files in the order it was written, by curve."""
    found: dict[str, list[tuple[int, str]]] = {}
    for path in sorted(directory.rglob("*tfevents*")):
        for event in _events(path.read_bytes()):
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name in ("", "scalars") and value.HasField("tensor"):
                    content = value.tensor.float_val or value.tensor.double_val
                    number = repr(content[0]) if content else value.tensor.tensor_content.hex()
                    found.setdefault(f"{path.parent.name}/{value.tag}", []).append((event.step, number))
    return found


def _events(content: bytes) -> Iterator[Event]:
    """The records of an event file; the last one must be complete. (TensorBoard's own reader would import TensorFlow here.)"""
    place = 0
    while place < len(content):
        size = int.from_bytes(content[place : place + 8], "little")
        assert place + 16 + size <= len(content), "the last record is cut off"
        yield Event.FromString(content[place + 12 : place + 12 + size])
        place += 16 + size


def _export(directory: Path) -> dict[str, Any]:
    description = json.loads((directory / "scenario.json").read_text())
    description["result"].pop("seconds", None)
    assert (directory / "saved_model" / "saved_model.pb").is_file()
    return {"result": description["result"], "weights": _weights(directory / "model.keras")}


def _weights(path: Path) -> str:
    """A hash of the weights in a Keras file (the file itself holds the time it was saved at)."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(path) as archive, archive.open("model.weights.h5") as raw, h5py.File(raw, "r") as file:
        values: dict[str, bytes] = {}
        file.visititems(
            lambda name, item: (
                values.__setitem__(name, np.asarray(item).tobytes()) if isinstance(item, h5py.Dataset) else None
            )
        )
    for name in sorted(values):
        digest.update(name.encode() + values[name])
    return digest.hexdigest()
