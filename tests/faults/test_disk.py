"""A disk that is full: the run says so, trains on, and loses nothing once there is room again."""

import errno
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import FAST, SCENARIO, SLOW, fingerprint, flags
from tests.faults.test_kills import assert_same
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
