"""trackio's database holds each value once, in order, whenever the sender is killed; sqlite3 and trackio's own reader say so."""

import json
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.model.tensorboard import ImageData, TextData
from scena.training.trackers.media import store_data
from scena.training.trackers.recorder import Recorder
from tests.environments import ROOT, own_environment

pytestmark = pytest.mark.long

VALUES = [(f"{kind}/loss", step, step / 3) for step in range(1, 9) for kind in ("val", "train")]
SEND = """
import sys
from pathlib import Path
from scena.training.trackers import sender as module
from scena.training.trackers.params import TrackioParams
module.MOST_POINTS = int(sys.argv[2])
folder = Path(sys.argv[1])
service = TrackioParams(project="digits", tags=["paper=v2"]).create(folder / "files")
print("loaded", flush=True)
sender = module.Sender(folder / "journal", service, folder, folder / "media")
assert sender.catch_up(), sender.status
print("sent", sender.status.urls, flush=True)
"""
READ = """
import json, sys
from trackio.sqlite_storage import SQLiteStorage
runs = SQLiteStorage.get_run_records("digits")
print(json.dumps([[run["id"], run["name"], SQLiteStorage.get_run_config("digits", run["name"], run["id"]),
    SQLiteStorage.get_logs("digits", run["name"], run_id=run["id"]),
    [link["name"] for link in SQLiteStorage.get_run_artifacts("digits", run["name"], run["id"])["output"]],
] for run in runs]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The interpreter of an environment with trackio; it needs an older Pillow than Scena's tests."""
    folder = tmp_path_factory.mktemp("trackio") / "env"
    yield own_environment(folder, "trackio")
    shutil.rmtree(folder)


def places(folder: Path) -> dict[str, str]:
    """The environment that keeps trackio in a folder."""
    own = {"TRACKIO_DIR": str(folder / "trackio"), "HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}
    return own | {"PYTHONPATH": str(ROOT)}


def start(python: Path, folder: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    environment = os.environ | places(folder)
    return subprocess.Popen([python, *arguments], env=environment, stdout=subprocess.PIPE, text=True)


def send(python: Path, folder: Path) -> None:
    ended = start(python, folder, "-c", SEND, folder, "500")
    assert "trackio show --project digits" in ended.communicate()[0] and ended.returncode == 0


def rows(folder: Path, project: str = "digits") -> list[tuple[str, str, int, Any]]:
    """Run, key, step and value of everything in the database, in the order in which it came."""
    database = sqlite3.connect(folder / "trackio" / f"{project}.db")
    if not database.execute("select 1 from sqlite_master where name = 'metrics'").fetchall():
        database.close()
        return []  # killed before trackio made its table
    found = database.execute("select run_id, step, metrics from metrics order by id").fetchall()
    database.close()
    return [(run, key, step, value) for run, step, text in found for key, value in json.loads(text).items()]


def record(folder: Path) -> Recorder:
    return Recorder(folder / "journal", "abc", "module:Scenario", "first", lambda: {"lr": 0.1})


def test_the_database_holds_everything_once(python: Path, tmp_path: Path) -> None:
    recorder = record(tmp_path)
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "weights").write_bytes(b"12")
    for key, step, value in VALUES[:8]:
        recorder.points({key: value}, step)
    recorder.points({"worst": math.nan, "time": math.inf}, 4)
    media = tmp_path / "media"
    image, text = ImageData(np.full((2, 2), 7, np.uint8)), TextData("three **errors**")
    recorder.data("val/errors", "image", 4, lambda branch: store_data(image, media, "e", 4, branch))
    recorder.data("val/note", "text", 4, lambda branch: store_data(text, media, "n", 4, branch))
    recorder.tags({"host": "here"})
    recorder.artifact("best", "best")
    send(python, tmp_path)
    recorder.points({"val/loss": 0.5}, 2)  # a linked run
    recorder.end()
    send(python, tmp_path)
    send(python, tmp_path)
    found = rows(tmp_path)
    first = [(key, step, value) for run, key, step, value in found if run == "abc"]
    assert first[:8] == VALUES[:8] and first[8:10] == [("worst", 4, "NaN"), ("__time", 4, "Infinity")]
    picture = first[10][2]
    assert first[10][:2] == ("val/errors", 4) and (tmp_path / "trackio/media" / picture["file_path"]).is_file()
    assert first[11:] == [("val/note", 4, {"_type": "trackio.markdown", "_value": "three **errors**"})]
    assert [row for row in found if row[0] != "abc"] == [("abc-1", "val/loss", 2, 0.5)]
    answer = start(python, tmp_path, "-c", READ).communicate()[0]
    one, linked = sorted(json.loads(answer.splitlines()[-1]))
    assert one[:2] == ["abc", "first"] and one[4] == ["abc-best"] and one[3][1]["val/loss"] == VALUES[0][2]
    assert (one[2]["lr"], one[2]["paper"], one[2]["host"]) == (0.1, "v2", "here")
    assert linked[2]["scena.continues"] == "abc" and linked[2]["_Group"] == "abc"
    assert not (tmp_path / "home").exists()


def test_kills_of_the_sender(python: Path, tmp_path: Path) -> None:
    recorder, chance, killed = record(tmp_path), random.Random(4), 0
    for number in range(len(VALUES)):
        key, step, value = VALUES[number]
        recorder.points({key: value}, step)
        process = start(python, tmp_path, "-c", SEND, tmp_path, "1")  # each value is a transaction
        assert process.stdout is not None and process.stdout.readline() == "loaded\n"
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        there = [row[1:] for row in rows(tmp_path)] if (tmp_path / "trackio" / "digits.db").exists() else []
        assert there == VALUES[: len(there)], "a value is missing, differs, is there twice or too early"
    assert killed >= 3
    print(f"{killed} kills")
    recorder.end()
    send(python, tmp_path)
    assert [row[1:] for row in rows(tmp_path)] == VALUES
