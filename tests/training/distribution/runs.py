"""Trainings on several devices and in several processes, and comparing what they end with."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from scena.backends.local_cluster import free_ports
from scena.storage.tensor_file import read_tensors
from tests.training.distribution.several import WORKER
from tests.zygote import Child, Zygote

# 61 samples in batches of 20: the last batch has a single sample, and leaves nothing to some of the replicas
FLAGS = (
    "--trainer.epochs 3 --trainer.random_seed 7 --data.count 61 --train.batch_size 20 --val.batch_size 16 --model.dropout 0 "
    "--trainer.export_best False --trainer.export_final False --tensorboard.write False --train.num_processes 0 --val.num_processes 0"
).split()
SCENARIO = "tests.training.distribution.several"


def train(zygote: Zygote, directory: Path, more: str = "", scenario: str = SCENARIO, flags: list[str] = FLAGS) -> Path:
    """One training in one process, to its end."""
    log = directory.with_suffix(".log")
    status = zygote.run("train", scenario, "--trainer.output_dir", directory, *merged(flags, more), log=log)
    assert status == 0, log.read_text()
    return directory


def merged(flags: list[str], more: str) -> list[str]:
    """Flags of one value each, some of them changed."""
    words = more.split()
    chosen = dict(zip(flags[::2], flags[1::2], strict=True)) | dict(zip(words[::2], words[1::2], strict=True))
    return [word for pair in chosen.items() for word in pair]


def start_workers(zygote: Zygote, count: int, directory: Path, command: list[str], more: str = "") -> list[Child]:
    """Starts the processes of a training; each writes to a log of its own."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
    return [
        zygote.start(
            *[*command, "--device.dist_strategy", "multi_worker", "--device.workers", *addresses],
            *["--device.worker_index", str(index), *more.split()],
            log=directory.with_suffix(f".{index}.log"),
            environment={WORKER: str(index)},
        )
        for index in range(count)
    ]


def history(directory: Path) -> list[dict[str, float]]:
    """The values of each epoch."""
    with (directory / "history.csv").open(newline="") as file:
        return [{k: float(v) for k, v in row.items() if k != "seconds" and v} for row in csv.DictReader(file)]


def state(directory: Path) -> dict[str, Any]:
    """All tensors of the last checkpoint, but random states and a sum that Keras keeps and nobody reads.

    That sum, the first of the metrics, is multiplied by the number of replicas.
    """
    step = max(int(path.name) for path in (directory / "checkpoint").iterdir() if path.name.isdecimal())
    path = directory / "checkpoint" / str(step)
    tensors = read_tensors(path / "tensors.safetensors")
    entries = json.loads((path / "state.json").read_text())["variables"]
    return {
        entry["key"]: tensors[entry["key"]] for entry in entries if not entry["key"].startswith(("random", "metrics/0"))
    }


def assert_equal_runs(directory: Path, expected: Path, tolerance: float = 1e-5) -> None:
    """Same curves and same state: weights, optimizer, averages, metrics."""
    for row, before in zip(history(directory), history(expected), strict=True):
        assert row.keys() == before.keys()
        for name in row:
            np.testing.assert_allclose(row[name], before[name], rtol=tolerance, atol=tolerance, err_msg=name)
    after, before_state = state(directory), state(expected)
    assert after.keys() == before_state.keys()
    for key in after:
        np.testing.assert_allclose(after[key], before_state[key], rtol=tolerance, atol=tolerance, err_msg=key)
