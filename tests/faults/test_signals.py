"""SIGTERM, SIGINT and the time limit: the step is finished, the state saved, and the run goes on as if nothing had happened."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import FAST, SCENARIO, SLOW, fingerprint, flags
from tests.faults.test_kills import assert_same
from tests.zygote import Zygote

# to be hit in the middle of an epoch, where no checkpoint is due
BETWEEN = f"{SLOW} --trainer.checkpoint_every 100"


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.long)]
)
def test_a_signal_saves_and_leaves(
    zygote: Zygote, expected: dict[str, Any], tmp_path: Path, number: int, status: int
) -> None:
    directory, log = tmp_path / "run", tmp_path / "run.log"
    child = zygote.start("train", SCENARIO, "--trainer.output_dir", directory, *flags(BETWEEN), log=log)
    child.wait_for("New best model")
    time.sleep(0.3)
    child.kill(number)
    assert child.wait() == status, child.text
    assert f"Stopped by {signal.Signals(number).name} at step " in child.text
    assert f"resume with: scena resume {directory}" in child.text
    assert "error" not in child.text
    (saved,) = [path.name for path in (directory / "checkpoint").iterdir()]
    assert int(saved) >= 5
    assert zygote.run("resume", directory, *FAST, log=log) == 0, log.read_text()
    assert_same(directory, expected)


def test_a_second_signal_leaves_at_once(zygote: Zygote, tmp_path: Path) -> None:
    directory, log = tmp_path / "run", tmp_path / "run.log"
    hanging = flags("--data.pre_proc.processors.Jitter.seconds 1")
    child = zygote.start("train", SCENARIO, "--trainer.output_dir", directory, *hanging, log=log)
    child.wait_for("Training ")
    time.sleep(0.5)  # inside the first batch, which takes eight seconds
    child.kill(signal.SIGTERM)
    child.wait_for("A second signal ends it at once")
    begun = time.monotonic()
    child.kill(signal.SIGTERM)
    assert child.wait() == -signal.SIGTERM
    assert time.monotonic() - begun < 2


@pytest.mark.long
def test_the_time_limit_saves_and_leaves(zygote: Zygote, expected: dict[str, Any], tmp_path: Path) -> None:
    directory, log = tmp_path / "run", tmp_path / "run.log"
    limited = flags(f"{BETWEEN} --trainer.time_limit 4s")
    status = zygote.run("train", SCENARIO, "--trainer.output_dir", directory, *limited, log=log)
    assert status == 75, log.read_text()
    assert "Stopped by the time limit" in log.read_text()
    rounds = 0
    while status == 75:
        rounds += 1
        assert rounds < 20
        status = zygote.run("resume", directory, "--trainer.time_limit", "8s", log=log)
    assert status == 0, log.read_text()
    assert_same(directory, expected)


@pytest.mark.long
@pytest.mark.parametrize("moment", ["validation", "LAV"])
def test_a_signal_in_the_middle_of_a_validation(zygote: Zygote, tmp_path: Path, moment: str) -> None:
    """The validation is given up and repeated by the next process; nothing is counted or written twice."""
    changes = "--data.pre_proc.processors.Jitter.seconds 0.02 --trainer.val_every_n 1 --trainer.checkpoint_every 100 --trainer.epochs 3"
    changes += " --val.batch_size 1 --early_stopping.n_to_go 2"
    changes += " --trainer.lav_every_n 1" if moment == "LAV" else ""
    whole = tmp_path / "whole"
    assert (
        zygote.run("train", SCENARIO, "--trainer.output_dir", whole, *flags(changes), log=tmp_path / "whole.log") == 0
    )
    directory, log = tmp_path / "run", tmp_path / "run.log"
    child = zygote.start("train", SCENARIO, "--trainer.output_dir", directory, *flags(changes), log=log)
    child.wait_for("Epoch 1/3")
    # an epoch has 48 samples of 20 ms, and so has its validation, and its LAV
    time.sleep(1.5 if moment == "validation" else 2.5)
    child.kill(signal.SIGTERM)
    assert child.wait() == 143, child.text
    assert zygote.run("resume", directory, log=log) == 0, log.read_text()
    assert_same(directory, fingerprint(whole))


def test_a_time_limit_needs_a_unit(zygote: Zygote, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert zygote.run("train", SCENARIO, "--trainer.time_limit", "3", log=log) == 2
    assert "a time such as 90s, 30min or 3h" in log.read_text()
