"""Callbacks and trackers are parameters; a callback can ask for a checkpoint, a validation and the end."""

import json
from pathlib import Path

import pytest

from scena.commands.main import main
from scena.training.trigger import Trigger
from tests.toy.scenario import ToyScenario
from tests.training.callbacks.own import EveryThirdParams, FolderParams, LinesParams


def test_callbacks_are_parameters_and_can_ask(tmp_path: Path) -> None:
    params = ToyScenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed = 5, tmp_path / "run", 3
    params.checkpoint_every = Trigger(0)
    params.keep_checkpoints = 10
    params.callbacks = [EveryThirdParams(), LinesParams(file=tmp_path / "lines")]
    ToyScenario.create_trainer(params).train()
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
    assert lines[0] == ["parameters", 5] and lines[-1] == ["closed"]
    values = ["acc", "loss"]
    assert [line for line in lines if line[0] == "val"] == [["val", step, values] for step in (3, 4, 6, 8)]
    assert [line[1] for line in lines if line[0] == "train"] == [4, 8]
    assert sorted(int(path.name) for path in (tmp_path / "run" / "checkpoint").iterdir()) == [3, 6]


def test_a_run_with_own_callbacks_names_its_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "tests.toy", "--import", "tests.training.callbacks.own", "--trainer.callbacks", "EveryThird"]
    assert main([*words, "--help"]) == 0
    assert "--trainer.callbacks.EveryThird.steps" in capsys.readouterr().out


@pytest.mark.parametrize("leaves", [False, True])
def test_a_history_that_cannot_be_written_in_the_last_epoch(
    leaves: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    params = ToyScenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed = 2, tmp_path / "run", 3
    params.callbacks = [FolderParams(leaves=leaves)]
    ToyScenario.create_trainer(params).train()
    history = tmp_path / "run" / "history.csv"
    assert f"Cannot write {history}: " in caplog.text
    assert (
        f"history.csv lacks epochs. Once it can be written: scena resume {tmp_path / 'run'}" in caplog.text
    ) == leaves
    if leaves:
        history.rmdir()
        assert main(["resume", str(tmp_path / "run"), "--scenario", "tests.toy"]) == 0
    assert [line.split(",")[0] for line in history.read_text().splitlines()] == ["epoch", "1", "2"]
