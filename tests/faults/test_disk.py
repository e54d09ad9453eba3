"""A disk that is full: the run says so, trains on, and loses nothing once there is room again."""

import errno
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.model.state.archive import WEIGHTS, unpacked_weights
from tests.faults.harness import FAST, SCENARIO, SLOW, fingerprint, flags, scalars
from tests.faults.test_kills import assert_same
from tests.faults.test_malicious_models import archive, weights
from tests.zygote import Zygote

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("cannot mount a small disk here")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def fill(disk: Path) -> Path:
    """Takes all the room there is."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 8, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError as error:
                assert error.errno == errno.ENOSPC
    return ballast


@pytest.mark.long
def test_a_full_disk_is_waited_out(zygote: Zygote, expected: dict[str, Any], small_disk: Path, tmp_path: Path) -> None:
    directory, log = small_disk / "run", tmp_path / "run.log"
    child = zygote.start("train", SCENARIO, "--trainer.output_dir", directory, *flags(SLOW), log=log)
    child.wait_for("New best model")
    while not (directory / "checkpoint" / "8").exists():
        time.sleep(0.001)
    ballast = fill(small_disk)
    assert child.wait_for("Cannot write the checkpoint"), child.text
    assert child.wait_for("Cannot write the best model"), child.text
    assert "No space left on device" in child.text
    assert "The last checkpoint is" in child.text
    ballast.unlink()
    assert child.wait() == 0, child.text
    assert "Checkpoints can be written again" in child.text
    found = fingerprint(directory)
    for part in ("tensors", "history", "best", "export"):
        assert found[part] == expected[part], part


def test_a_disk_that_stays_full_ends_the_run_with_an_error(
    zygote: Zygote, expected: dict[str, Any], small_disk: Path, tmp_path: Path
) -> None:
    directory, log = small_disk / "run", tmp_path / "run.log"
    child = zygote.start("train", SCENARIO, "--trainer.output_dir", directory, *flags(SLOW), log=log)
    child.wait_for("New best model")
    while not (directory / "checkpoint" / "8").exists():
        time.sleep(0.001)
    ballast = fill(small_disk)
    assert child.wait() == 1, child.text
    assert "error: Cannot write the best model" in child.text
    assert [path.name for path in (directory / "checkpoint").iterdir() if path.name.isdecimal()]
    ballast.unlink()
    assert zygote.run("resume", directory, *FAST, log=log) == 0, log.read_text()
    shutil.copy(log, directory.with_suffix(".log"))
    assert_same(directory, expected)


def test_lost_logs_do_not_end_a_training(
    zygote: Zygote, expected: dict[str, Any], small_disk: Path, tmp_path: Path
) -> None:
    """The disk of the logs is full before the first validation, and has room again later."""
    directory, log, logs = tmp_path / "run", tmp_path / "run.log", small_disk / "logs"
    ballast = fill(small_disk)
    child = zygote.start(
        "train", SCENARIO, "--trainer.output_dir", directory, "--trainer.log_dir", logs, *flags(SLOW), log=log
    )
    refused = child.wait() if not child.wait_for("Training ") else None
    assert refused == 1 and "error: Cannot write to --trainer.log_dir" in child.text  # there is no room for anything
    ballast.unlink()
    child = zygote.start(
        "train", SCENARIO, "--trainer.output_dir", directory, "--trainer.log_dir", logs, *flags(SLOW), log=log
    )
    assert child.wait_for("Training ")
    ballast = fill(small_disk)
    assert child.wait_for("Cannot write TensorBoard's events to"), child.text
    assert child.wait_for("Epoch 3/5"), child.text
    ballast.unlink()
    assert child.wait() == 0, child.text
    assert child.text.count("Cannot write TensorBoard's events to") == 1
    assert "No space left on device. The training continues; its curves will have a gap." in child.text
    assert "TensorBoard's events can be written again." in child.text
    assert "Traceback" not in child.text
    curves = scalars(logs / "tensorboard")  # every record in every file is whole
    assert {step for step, _ in curves["val/loss"]} < {step for step, _ in expected["scalars"]["val/loss"]}
    assert curves["val/loss"][-1] == expected["scalars"]["val/loss"][-1]
    (directory / "tensorboard").symlink_to(logs / "tensorboard")
    found = fingerprint(directory)
    for part in ("tensors", "state", "history", "best", "export"):
        assert found[part] == expected[part], part


@pytest.mark.long
def test_a_disk_that_is_full_before_the_first_validation(
    zygote: Zygote, expected: dict[str, Any], small_disk: Path, tmp_path: Path
) -> None:
    directory, log = small_disk / "run", tmp_path / "run.log"
    child = zygote.start("train", SCENARIO, "--trainer.output_dir", directory, *flags(SLOW), log=log)
    assert child.wait_for("Training ")
    ballast = fill(small_disk)
    assert child.wait() == 1, child.text
    assert "Traceback" not in child.text
    assert child.text.count("Cannot write TensorBoard's events to") == child.text.count("history.csv: No space") == 1
    ballast.unlink()
    assert zygote.run("resume", directory, *FAST, log=log) == 0, log.read_text()
    shutil.copy(log, directory.with_suffix(".log"))
    assert_same(directory, expected)


def test_weights_that_cannot_be_unpacked_are_not_called_damaged(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.keras"
    archive(path, {WEIGHTS: weights(lambda file: file.create_dataset("values", data=np.ones(1 << 20)))})
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    with (
        pytest.raises(OSError, match=rf"No space left on device, to unpack {path}") as error,
        unpacked_weights(path, 1 << 23),
    ):
        pass
    assert error.value.errno == errno.ENOSPC and str(error.value.filename).startswith(str(small_disk))
