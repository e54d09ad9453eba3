"""Checks a run by its files alone, without Scena: was each sample used exactly once in each epoch, in the order that the seed gives?

The model of `tests/reliability/counted` stores in its weights how often each sample was used and when, so each checkpoint proves what
led to it, whatever crashed in between. The checker also compares history, TensorBoard's events and the journal of trackers.

    python -m tests.reliability.checker RUN
"""

import csv
import json
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from tensorboard.compat.proto.event_pb2 import Event

SHUFFLE = 1 << 40
Points = dict[tuple[str, int], float]
"""(curve, step) → value."""


class RunError(AssertionError):
    """A run is not what it should be."""


def check(run: Path) -> dict[str, int]:
    """Checks a run; returns how much was compared. Raises RunError."""
    params = json.loads((run / "trainer_params.json").read_text())["trainer"]
    checkpoints = sorted(
        (path for path in (run / "checkpoint").iterdir() if path.name.isdecimal()), key=lambda p: int(p.name)
    )
    _require(bool(checkpoints), "there is no checkpoint")
    for path in checkpoints:
        _check_samples(path, params)
    history = _history(run / "history.csv")
    curves, journal = _events(run / "tensorboard"), _journal(run / "tracking" / "journal")
    for (name, step), value in history.items():
        _require(curves.get((name, step)) == np.float32(value), f"TensorBoard has another {name} at step {step}")
        if journal:
            _require(journal.get((name, step)) == value, f"the journal has another {name} at step {step}")
    samples = int(params["epochs"]) * _count(params)
    return {"checkpoints": len(checkpoints), "samples": samples, "values": len(history), "points": len(journal)}


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise RunError(problem)


# ---- samples ----------------------------------------------------------------------------------------------------------


def _count(params: Any) -> int:
    return int(params["scenario"]["model"]["count"])


def order(seed: int, epoch: int, count: int) -> Any:
    """The order of the samples of an epoch."""
    bits = np.random.Philox(key=np.array([seed, epoch], np.uint64), counter=np.array([0, SHUFFLE, 0, 0], np.uint64))
    return np.random.Generator(bits).permutation(count)


def _check_samples(path: Path, params: Any) -> None:
    seed, count, size = int(params["random_seed"]), _count(params), int(params["gen"]["train"]["batch_size"])
    step = json.loads((path / "state.json").read_text())["progress"]["step"]
    _require(step == int(path.name), f"{path} is that of step {step}")
    times, last, total = _tally(path)
    per_epoch = -(-count // size)
    epochs, steps = divmod(step, per_epoch)
    used = min(steps * size, count)
    _require(total == epochs * count + used, f"{path}: {total} samples were used instead of {epochs * count + used}")
    expected_times, expected_last = np.full(count, epochs), np.zeros(count, np.int64)
    for epoch in (epochs - 1, epochs):
        chosen = order(seed, epoch, count)[: used if epoch == epochs else count] if epoch >= 0 else []
        for place, sample in enumerate(chosen):
            expected_last[sample] = epoch * count + place
            expected_times[sample] += epoch == epochs
    _require(list(times) == list(expected_times), f"{path}: samples were used more or less than once in an epoch")
    _require(list(last) == list(expected_last), f"{path}: samples were used in another order than that of the seed")


def _tally(path: Path) -> tuple[Any, Any, int]:
    variables = json.loads((path / "state.json").read_text())["variables"]
    keys = {entry["path"].rpartition("/")[2]: entry["key"] for entry in variables if "tally" in entry["path"]}
    data = (path / "tensors.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])

    def read(name: str) -> Any:
        start, end = header[keys[name]]["data_offsets"]
        return np.frombuffer(data[8 + length + start : 8 + length + end], np.int32)

    return read("times"), read("last"), int(read("total")[0])


# ---- values -----------------------------------------------------------------------------------------------------------


def _history(path: Path) -> Points:
    found: Points = {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    _require([int(row["epoch"]) for row in rows] == list(range(1, len(rows) + 1)), "the history lacks an epoch")
    for row in rows:
        for name, text in row.items():
            if text and name not in ("epoch", "step", "seconds"):
                kind, _, rest = name.partition("_")
                found[f"val/{rest}" if kind == "val" else f"train/{name}", int(row["step"])] = float(text)
    return found


def _events(folder: Path) -> dict[tuple[str, int], Any]:
    found: dict[tuple[str, int], Any] = {}
    for path in sorted(folder.rglob("*tfevents*")):
        data, offset = path.read_bytes(), 0
        while offset < len(data):
            size = struct.unpack("<Q", data[offset : offset + 8])[0]
            _require(offset + 16 + size <= len(data), f"{path} is cut off")
            event = Event.FromString(data[offset + 12 : offset + 12 + size])
            offset += 16 + size
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name in ("", "scalars") and value.HasField("tensor"):
                    key = f"{path.parent.name}/{value.tag}", event.step
                    _require(key not in found, f"TensorBoard has {key[0]} of step {key[1]} twice")
                    raw = value.tensor.tensor_content
                    found[key] = np.float32(
                        value.tensor.float_val[0] if value.tensor.float_val else np.frombuffer(raw, np.float32)[0]
                    )
    return found


def _journal(path: Path) -> Points:
    found: Points = {}
    if not path.exists():
        return found
    lines = path.read_bytes().splitlines()
    counts: Counter[tuple[str, int]] = Counter()
    for line in lines:
        crc, _, body = line.partition(b" ")
        _require(int(crc, 16) == google_crc32c.value(body), "an entry of the journal is damaged")
        entry = json.loads(body)
        if entry["type"] == "points":
            _require(entry["branch"] == 0, "the journal has a branch, although nothing differed")
            found |= {(name, entry["step"]): float(value) for name, value in entry["values"].items()}
            counts.update((name, entry["step"]) for name in entry["values"])
    twice = [key for key, number in counts.items() if number > 1]
    _require(not twice, f"the journal has {twice[:1]} twice")
    return found


if __name__ == "__main__":
    for run in sys.argv[1:]:
        print(run, check(Path(run)))
