"""Layers that keep more than variables: trained, killed, resumed, exported, and never wrong."""

import csv
import time
from pathlib import Path

import pytest

from scena.evaluation.params import LAVParams
from tests.derived.params import RowsParams
from tests.derived.scenario import DerivedScenario
from tests.faults.harness import fingerprint
from tests.faults.test_kills import assert_same
from tests.zygote import Zygote

FLAGS = (
    "--trainer.epochs 3 --trainer.random_seed 5 --trainer.checkpoint_every 2steps --train.num_processes 0 --val.num_processes 0 "
    "--trainer.ema_decay 0.5"
).split()


def start(directory: Path, seconds: float) -> list[str]:
    """The command of a training, in which a row takes some time."""
    return ["train", "tests.derived", "--trainer.output_dir", str(directory), *FLAGS, "--data.seconds", str(seconds)]


@pytest.fixture(scope="module")
def reference(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nobody interrupts."""
    directory = tmp_path_factory.mktemp("derived") / "run"
    log = directory.with_suffix(".log")
    assert zygote.run(*start(directory, 0), log=log) == 0, log.read_text()
    return directory


def test_a_killed_run_ends_as_if_it_had_not_been_killed(zygote: Zygote, reference: Path, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    child = zygote.start(*start(directory, 0.02), log=tmp_path / "run.log")
    while child.is_alive() and not (directory / "checkpoint" / "4").is_dir():
        time.sleep(0.01)
    child.kill()
    assert child.wait() == -9, child.text
    log = tmp_path / "run.log"
    assert zygote.run("resume", directory, "--data.seconds", "0", log=log) == 0, log.read_text()
    assert_same(directory, fingerprint(reference))


@pytest.mark.parametrize("name", ["best", "export"])
def test_exports_give_what_the_validation_gave(reference: Path, name: str) -> None:
    with (reference / "history.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    losses = [float(row["val_loss"]) for row in rows]
    result = DerivedScenario.create_lav(reference / name, LAVParams()).run(RowsParams())
    assert result["loss"] == pytest.approx(min(losses) if name == "best" else losses[-1], abs=1e-6)
