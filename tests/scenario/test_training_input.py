"""Bad input to a training: one clear message, a non-zero status, and nothing that existed is damaged."""

import os
from pathlib import Path
from typing import Any

import pytest

from scena.commands.main import main
from scena.errors import DataError, ModelError, ScenaError, TrainingError
from tests.toy.scenario import ToyScenario


def params(directory: Path, **changes: Any) -> Any:
    """Trainer parameters of two quick epochs."""
    made = ToyScenario.default_trainer_params()
    made.epochs, made.output_dir, made.random_seed = 2, directory, 7
    for name, value in changes.items():
        target: Any = made
        *path, last = name.split("__")
        for part in path:
            target = getattr(target, part)
        setattr(target, last, value)
    return made


def train(directory: Path, **changes: Any) -> list[dict[str, Any]]:
    return ToyScenario.create_trainer(params(directory, **changes)).train()


@pytest.mark.parametrize(
    ("bad", "parts"),
    [
        ("shape", ["'x'", "(8,)", "(7,)", "sample 5"]),
        ("dtype", ["'x'", "float32", "sample 5"]),
    ],
)
def test_a_sample_that_does_not_match_its_spec_is_named(tmp_path: Path, bad: str, parts: list[str]) -> None:
    with pytest.raises(DataError) as error:
        train(tmp_path / "run", gen__train_val__bad=bad)
    for part in parts:
        assert part in str(error.value)


def test_an_empty_data_set_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no training batch.*HalvesParams"):
        train(tmp_path / "run", gen__train_val__count=0)


def test_a_loss_that_is_not_a_number_stops_with_its_step_and_the_last_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"The loss is nan at step 1 \(epoch 1\)\. .*no checkpoint") as error:
        train(tmp_path / "run", gen__train_val__bad="nan")
    assert error.value.exit_status == 1


def test_a_loss_that_is_not_a_number_can_be_allowed(tmp_path: Path) -> None:
    history = train(tmp_path / "run", gen__train_val__bad="nan", stop_on_nan=False)
    assert len(history) == 2


def test_a_directory_that_holds_a_run_is_not_overwritten(tmp_path: Path) -> None:
    train(tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(TrainingError, match="already holds a run .*`scena resume"):
        train(tmp_path / "run")
    assert before == {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}


@pytest.mark.parametrize("mistake", [{"gen__train_val__count": 0}, {"no_train_scope": "nothing"}], ids=["data", "flag"])
def test_what_fails_before_the_first_step_is_no_run(tmp_path: Path, mistake: dict[str, Any]) -> None:
    """The same command, put right, may use the same directory."""
    with pytest.raises(ScenaError):
        train(tmp_path / "run", **mistake)
    assert len(train(tmp_path / "run")) == 2


def test_an_output_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        TrainingError, match="Cannot write to the output directory .*Choose another --trainer.output_dir"
    ):
        train(tmp_path / "file" / "run")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(TrainingError, match="Permission denied"):
            train(tmp_path / "run")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("none", "ToyModel._loss returned no loss"),
        ("tensor", "ToyModel._loss must return a dict"),
        ("key", "ToyModel._loss asks for 'missing'. There are inputs .*'x'.* outputs .*'logits'"),
        ("twice", "'loss' is the name of their sum"),
        ("clash", "'acc'.* is the name of a loss and of a metric"),
        ("metric", "must be created in __init__"),
        ("graph", "must return a dict of named outputs"),
    ],
)
def test_a_model_that_returns_the_wrong_thing_is_told_what_to_return(tmp_path: Path, wrong: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        train(tmp_path / "run", scenario__model__wrong=wrong)


def test_best_settings_that_fit_nothing_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match=r"'val_accc' \(ToyModel._best_logging_settings\), but there are only .*val_acc"
    ):
        train(tmp_path / "a", scenario__model__wrong="best")
    with pytest.raises(TrainingError, match="'min' or 'max'.*'highest'"):
        train(tmp_path / "b", scenario__model__wrong="mode")


def test_a_gpu_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenaError, match=r"--device.gpus 7: there is no GPU 7. TensorFlow sees these GPUs"):
        train(tmp_path / "run", device__gpus=[7])


@pytest.mark.parametrize("command", ["lav", "predict"])
def test_a_missing_export_directory_is_named(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(tmp_path / "nothing")]) == 1
    assert f"There is no export directory '{tmp_path / 'nothing'}'" in capsys.readouterr().err
    assert main([command, str(tmp_path)]) == 1
    assert "is not an export directory: it has no scenario.json" in capsys.readouterr().err


def test_resuming_what_is_not_a_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(tmp_path)]) == 1
    assert "is not the directory of a run: it has no trainer_params.json" in capsys.readouterr().err
