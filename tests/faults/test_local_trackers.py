"""W&B's files and trackio's database hold each value once and in order after kills and older checkpoints; their own readers say so."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environments import own_environment
from tests.faults.tracked import Numbers, live_through_everything
from tests.training.trackers.test_trackio import places, rows
from tests.training.trackers.test_wandb import history
from tests.zygote import Zygote

pytestmark = pytest.mark.long


def test_wandb(zygote: Zygote, expected: dict[str, Any], tmp_path: Path) -> None:
    run = tmp_path / "run"

    def held() -> dict[str, Numbers]:
        """The union of the files of each run id; each file by itself is in order."""
        found: dict[str, Numbers] = {}
        for file, numbers in history(run / "tracking").items():
            steps = [step for _, step, _ in numbers]
            assert steps == sorted(steps), f"{file} is out of order"
            found.setdefault(file.stem.removeprefix("run-"), []).extend(
                each for each in numbers if isinstance(each[2], int | float)
            )
        return {identity: sorted(numbers, key=lambda each: each[1]) for identity, numbers in found.items()}

    live_through_everything(zygote, run, ["--tracker", "wandb"], held, expected)
    assert len(history(run / "tracking")) >= 4, "each sender writes a file of its own"


@pytest.fixture(scope="module")
def trackio_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The interpreter of an environment with trackio; it needs an older Pillow than Scena's tests."""
    folder = tmp_path_factory.mktemp("trackio") / "env"
    yield own_environment(folder, "trackio")
    shutil.rmtree(folder)


def test_trackio(trackio_python: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    def held() -> dict[str, Numbers]:
        found: dict[str, Numbers] = {}
        for run, key, step, value in rows(tmp_path):
            if isinstance(value, int | float):
                found.setdefault(run, []).append((key, step, value))
        return found

    zygote = Zygote.started(trackio_python, **places(tmp_path))
    try:
        tracker = ["--tracker", "trackio", "--tracker.trackio.project", "digits"]
        identity = live_through_everything(zygote, tmp_path / "run", tracker, held, expected)
    finally:
        zygote.close()
    with sqlite3.connect(tmp_path / "trackio" / "digits.db") as database:
        described = dict(database.execute("select run_id, config from configs").fetchall())
    assert json.loads(described[f"{identity}-1"])["scena.continues"] == identity
