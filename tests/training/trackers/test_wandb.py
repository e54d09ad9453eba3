"""The offline files of one W&B run id hold each value once, in order, whenever the sender is killed; W&B's own reader says so."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.model.tensorboard import ImageData, TextData
from scena.training.trackers.media import store_data
from scena.training.trackers.params import WandbParams
from scena.training.trackers.recorder import Recorder

VALUES = [(f"{kind}/loss", step, step / 3) for step in range(1, 9) for kind in ("val", "train")]
SEND = """
import sys
from pathlib import Path
from scena.training.trackers.params import WandbParams
from scena.training.trackers.sender import Sender
folder = Path(sys.argv[1])
sender = Sender(folder / "journal", WandbParams().create(folder / "wandb"), folder, folder / "media")
assert sender.catch_up(), sender.status
print("sent", flush=True)
if sys.argv[2] == "wait":
    sys.stdin.read()
sender.service.close()
"""


def start(folder: Path, how: str) -> subprocess.Popen[str]:
    home = {"HOME": str(folder / "home")}  # nothing of W&B belongs there
    command = [sys.executable, "-c", SEND, str(folder), how]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, env=os.environ | WandbParams().environment() | home, stdin=pipe, stdout=pipe, text=True
    )


def history(folder: Path) -> dict[Path, list[tuple[str, int, Any]]]:
    """Key, step and value of each file, read by W&B."""
    files: dict[Path, list[tuple[str, int, Any]]] = {}
    for file in sorted(folder.glob("wandb/wandb/offline-run-*/*.wandb")):
        command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | WandbParams().environment()
        )
        rows = [json.loads(line) for line in done.stdout.splitlines() if '"type":"history"' in line]
        files[file] = [
            (key, int(row["history"]["step"]["num"]), value)
            for row in rows
            for key, value in row["history"]["item"].items()
            if not key.startswith("_")
        ]
    return files


def check(folder: Path) -> int:
    keys = {key for key, _, _ in VALUES}
    files = [[each for each in file if each[0] in keys] for file in history(folder).values()]
    together = [each for file in files for each in file]
    assert sorted(together) == sorted(VALUES), "a value is missing, differs, or is there twice"
    for file in files:
        assert [step for _, step, _ in file] == sorted(step for _, step, _ in file)
    return len(files)


def test_offline_files_hold_each_value_once(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "journal", "abc", "module:Scenario", "first", lambda: {"lr": 0.1})
    for key, step, value in VALUES:
        recorder.points({key: value}, step)
        if (key, step) == ("val/loss", 4):
            killed = start(tmp_path, "wait")
            assert killed.stdout is not None and killed.stdout.readline() == "sent\n"
            killed.kill()  # at once, so W&B has not written all that it was given
            assert killed.wait() == -signal.SIGKILL
            killed.communicate()
    image, text = ImageData(np.full((2, 3, 3), 7, np.uint8)), TextData("three **errors**")
    media = tmp_path / "media"
    recorder.data("val/errors", "image", 8, lambda branch: store_data(image, media, "e", 8, branch))
    recorder.data("val/note", "text", 8, lambda branch: store_data(text, media, "n", 8, branch))
    recorder.end()
    for _ in range(2):  # the second one finds nothing to do
        ended = start(tmp_path, "end")
        assert ended.communicate()[0] == "sent\n" and ended.returncode == 0
    assert check(tmp_path) == 2
    found = [each for file in history(tmp_path).values() for each in file]
    ((_, step, path),) = [each for each in found if each[0] == "val/errors.path"]
    (stored,) = tmp_path.glob(f"wandb/wandb/offline-run-*/files/{path}")
    assert step == 8 and stored.read_bytes() == (media / "0-8-e.0.png").read_bytes()
    assert [each for each in found if each[0] == "val/note"] == [("val/note", 8, "three **errors**")]
    assert not (tmp_path / "home").exists()


@pytest.mark.long
def test_kills_of_the_sender(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "journal", "abc", "module:Scenario", "first", lambda: {"lr": 0.1})
    killings = 8
    for number in range(killings):
        for key, step, value in VALUES[: 2 * number + 2]:
            recorder.points({key: value}, step)
        killed = start(tmp_path, "wait")
        if number % 2:
            assert killed.stdout is not None and killed.stdout.readline() == "sent\n"
        time.sleep(0.3 * (number % 7))
        killed.kill()
        killed.communicate()
    print(f"{killings} kills")
    ended = start(tmp_path, "end")
    assert ended.communicate()[0] == "sent\n" and ended.returncode == 0
    check(tmp_path)
