"""`scena resume`: from where, with what changed, and when it refuses."""

import fcntl
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from scena.storage.run_layout import DIRECTORIES
from tests.faults.harness import FLAGS, SCENARIO, fingerprint, flags
from tests.faults.test_kills import assert_same
from tests.zygote import Zygote


@pytest.fixture
def run(reference: Path, tmp_path: Path) -> Path:
    """A finished run, moved to another place."""
    shutil.copytree(reference, tmp_path / "run")
    return tmp_path / "run"


def resume(zygote: Zygote, directory: Path, *words: str) -> tuple[int, str]:
    log = directory.with_suffix(".log")
    log.unlink(missing_ok=True)
    status = zygote.run("resume", directory, *words, log=log)
    return status, log.read_text()


def test_a_finished_run_says_so(zygote: Zygote, run: Path, expected: dict[str, Any]) -> None:
    status, text = resume(zygote, run)
    assert status == 0
    assert "This run is finished: it has trained all its epochs (5). Set more with --trainer.epochs." in text
    assert_same(run, expected)


def test_what_is_missing_of_a_finished_run_is_written(zygote: Zygote, run: Path, expected: dict[str, Any]) -> None:
    shutil.rmtree(run / "export")
    shutil.rmtree(run / "best/saved_model")
    status, _ = resume(zygote, run)
    assert status == 0
    assert_same(run, expected)


@pytest.mark.long
def test_more_epochs_are_those_of_a_longer_run(zygote: Zygote, run: Path, tmp_path: Path) -> None:
    status, text = resume(zygote, run, "--trainer.epochs", "7")
    assert status == 0, text
    assert "epochs: 5 → 7" in text
    assert "not that of" not in text
    whole, log = tmp_path / "whole", tmp_path / "whole.log"
    assert zygote.run("train", SCENARIO, "--trainer.output_dir", whole, *flags("--trainer.epochs 7"), log=log) == 0
    assert_same(run, fingerprint(whole))
    (entry,) = json.loads((run / "resumed.json").read_text())
    assert entry["changes"] == {"epochs": [5, 7]}
    assert (entry["from"], entry["step"]) == ("latest", 30)


def test_from_a_step_repeats_what_came_after(zygote: Zygote, run: Path, expected: dict[str, Any]) -> None:
    steps = sorted(int(path.name) for path in (run / "checkpoint").iterdir())
    status, text = resume(zygote, run, "--from", str(steps[0]))
    assert status == 0, text
    assert f"step {steps[0]}" in text
    assert f"The checkpoint of step {steps[-1]} is set aside" in text
    assert_same(run, expected)


@pytest.mark.long
def test_from_the_best_model(zygote: Zygote, run: Path, expected: dict[str, Any]) -> None:
    best = json.loads((run / "best/scenario.json").read_text())["result"]["step"]
    status, text = resume(zygote, run, "--from", "best")
    if (run / "checkpoint" / str(best)).exists():
        assert status == 0, text
    assert_same(run, expected)


@pytest.mark.parametrize(
    ("start", "message"), [("7", "There is no checkpoint of step 7"), ("last", "--from must be latest, best")]
)
def test_a_wrong_start_is_refused(zygote: Zygote, run: Path, start: str, message: str) -> None:
    before = fingerprint(run)
    status, text = resume(zygote, run, "--from", start)
    assert status in (1, 2)
    assert message in text
    assert fingerprint(run) == before


@pytest.mark.long
def test_a_change_that_ends_exactness_is_said(zygote: Zygote, run: Path) -> None:
    status, text = resume(
        zygote, run, "--trainer.epochs", "6", "--train.batch_size", "4", "--trainer.keep_checkpoints", "3"
    )
    assert status == 0, text
    assert "  train.batch_size: 8 → 4" in text
    assert "The result differs from a run with these parameters from the start, because of: train.batch_size." in text


def test_another_network_does_not_fit(zygote: Zygote, run: Path) -> None:
    status, text = resume(zygote, run, "--trainer.epochs", "6", "--model.units", "9")
    assert status == 1
    assert "the parameters or the code of the model have changed" in text
    assert json.loads((run / "trainer_params.json").read_text())["trainer"]["epochs"] == 5


def test_a_directory_in_use_is_refused(zygote: Zygote, run: Path) -> None:
    with (run / ".lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write("process 42 on another-host\n")
        file.flush()
        status, text = resume(zygote, run)
    assert status == 1
    assert "is in use: process 42 on another-host trains in it" in text
    assert resume(zygote, run)[0] == 0  # and free again as soon as the other has ended, however it did


@pytest.mark.long
def test_another_batch_size_in_the_middle_of_an_epoch(zygote: Zygote, tmp_path: Path) -> None:
    directory, log = tmp_path / "run", tmp_path / "run.log"
    slow = flags("--data.pre_proc.processors.Jitter.seconds 0.02 --trainer.epochs 2 --trainer.checkpoint_every 4steps")
    child = zygote.start("train", SCENARIO, "--trainer.output_dir", directory, *slow, log=log)
    while not (directory / "checkpoint" / "4").exists():
        assert child.wait_for("Training ")
    child.kill()
    child.wait()
    status, text = resume(zygote, directory, "--from", "4", "--train.batch_size", "4")
    assert status == 0, text
    # 48 samples: 4 steps of 8 and 4 of 4, then 12 of 4
    steps = [line.split(",")[1] for line in (directory / "history.csv").read_text().splitlines()[1:]]
    assert steps == ["8", "20"]


@pytest.mark.long
def test_two_trainings_cannot_share_a_directory(zygote: Zygote, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    slow = flags("--data.pre_proc.processors.Jitter.seconds 0.05")
    first = zygote.start("train", SCENARIO, "--trainer.output_dir", directory, *slow, log=tmp_path / "first.log")
    first.wait_for("Training ")
    status, text = resume(zygote, directory)
    assert (status, f"process {first.pid} on" in text) == (1, True)
    first.kill()
    first.wait()
    assert zygote.run("resume", directory, "--trainer.epochs", "1", log=tmp_path / "second.log") == 0


def test_parts_may_be_elsewhere(zygote: Zygote, expected: dict[str, Any], tmp_path: Path) -> None:
    parts = {name: tmp_path / f"my_{name}" for name in DIRECTORIES}
    elsewhere = [word for name, path in parts.items() for word in (f"--trainer.{name}", str(path))]
    directory, log = tmp_path / "run", tmp_path / "run.log"
    child = zygote.start("train", SCENARIO, "--trainer.output_dir", directory, *FLAGS, *elsewhere, log=log)
    while not (parts["checkpoint_dir"] / "12").exists():
        assert child.wait_for("Training ")
    child.kill(signal.SIGTERM)
    child.wait()
    words = " ".join(elsewhere)
    assert f"resume with: scena resume {directory} {words}" in log.read_text()
    moved = directory.rename(tmp_path / "moved")
    before = sorted(tmp_path.rglob("*"))
    assert zygote.run("resume", moved, log=log) == 1
    assert f"repeat them if you trust it: scena resume {moved} {words}" in log.read_text()
    assert before == sorted(tmp_path.rglob("*"))
    assert zygote.run("resume", moved, *elsewhere, log=log) == 0, log.read_text()
    assert not {"checkpoint", "tensorboard", "train.log", "best", "export"} & {path.name for path in moved.iterdir()}
    together = tmp_path / "together"
    shutil.copytree(moved, together)
    shutil.copytree(parts["checkpoint_dir"], together / "checkpoint")
    shutil.copytree(parts["log_dir"] / "tensorboard", together / "tensorboard")
    shutil.copytree(parts["best_dir"] / "best", together / "best")
    shutil.copytree(parts["export_dir"] / "export", together / "export")
    together.with_suffix(".log").touch()
    assert_same(together, expected)
