"""Each sample is used once in an epoch, in the order of the seed, whatever is killed; and the checker would notice if not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.reliability.checker import RunError, check
from tests.reliability.crashes import crash_and_check
from tests.zygote import Zygote


@pytest.fixture(scope="module")
def run(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crashes")
    kills, compared = crash_and_check(zygote, folder, seed=4, kills=2)
    assert kills >= 1
    assert compared["samples"] == 6 * 44
    assert compared["points"] >= compared["values"] == 18  # the load of the machine is among the points
    return folder / "run"


def lost_sample(run: Path) -> None:
    path = max((run / "checkpoint").iterdir(), key=lambda path: int(path.name)) / "tensors.safetensors"
    data = path.read_bytes()
    times = np.full(44, 6, np.int32).tobytes()
    assert data.count(times) == 1
    path.write_bytes(data.replace(times, np.array([5, 7] + 42 * [6], np.int32).tobytes()))


def other_seed(run: Path) -> None:
    path = run / "trainer_params.json"
    params = json.loads(path.read_text())
    params["trainer"]["random_seed"] += 1
    path.write_text(json.dumps(params))


def other_loss(run: Path) -> None:
    path = run / "history.csv"
    lines = path.read_text().splitlines()
    lines[2] = lines[2][:-1] + str((int(lines[2][-1]) + 1) % 10)
    path.write_text("\n".join(lines) + "\n")


def event_twice(run: Path) -> None:
    path = max((run / "tensorboard" / "val").iterdir(), key=lambda path: path.stat().st_size)
    data = path.read_bytes()
    path.with_name(f"{path.name}.copy").write_bytes(data)


def point_twice(run: Path) -> None:
    path = run / "tracking" / "journal"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, next(line for line in lines if b'"points"' in line)]))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lost_sample, "more or less than once"),
        (other_seed, "more or less than once|in another order"),
        (other_loss, "(TensorBoard|the journal) has another"),
        (event_twice, "twice"),
        (point_twice, "the journal has .* twice"),
    ],
)
def test_the_checker_notices(run: Path, tmp_path: Path, change: Callable[[Path], None], problem: str) -> None:
    shutil.copytree(run, tmp_path / "run")
    check(tmp_path / "run")
    change(tmp_path / "run")
    with pytest.raises(RunError, match=problem):
        check(tmp_path / "run")
