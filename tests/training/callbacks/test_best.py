"""The best model: by the validation, by LAV, by the training; at the end of an epoch or inside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from scena.errors import TrainingError
from scena.training.trigger import Trigger
from tests.toy.model import ToyModel
from tests.toy.params import ToyModelParams, ToyScenarioParams
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import train_toy


class ChosenModel(ToyModel):
    best = ("max", "acc")


class ChosenModelParams(ToyModelParams, builds=":ChosenModel"):
    """Best by what a test says."""


class ChosenScenario(ToyScenario):
    @classmethod
    def default_params(cls) -> ToyScenarioParams:
        return ToyScenarioParams(model=ChosenModelParams())


def best_of(directory: Path, monkeypatch: pytest.MonkeyPatch, by: tuple[str, str], **settings: Any) -> Any:
    """The result that is stored with the best model, and the history."""
    monkeypatch.setattr(ChosenModel, "best", by)
    settings |= {"export_best": True, "epochs": 6, "learning_rate__lr": 0.05}
    trainer = train_toy(directory / "run", scenario=ChosenScenario, **settings)
    return json.loads((directory / "run" / "best" / "scenario.json").read_text())["result"], trainer.history


@pytest.mark.parametrize(
    ("by", "key", "settings"),
    [
        (("min", "loss"), "val_loss", {}),
        (("max", "lav_acc"), "lav_acc", {"lav_every_n": Trigger(2)}),
        (("min", "loss"), "loss", {"val_every_n": Trigger(0)}),
        (("min", "loss"), "lav_loss", {"val_every_n": Trigger(0), "lav_every_n": Trigger(1)}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_the_best_of_all_epochs_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: tuple[str, str], key: str, settings: Any
) -> None:
    result, history = best_of(tmp_path, monkeypatch, by, **settings)
    measured = [row for row in history if row.get(key) is not None]
    wanted = (min if by[0] == "min" else max)(measured, key=lambda row: row[key])
    assert (result["best"], result["epoch"], result[key]) == (key, wanted["epoch"], pytest.approx(wanted[key]))


def test_a_validation_inside_an_epoch_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = best_of(tmp_path, monkeypatch, ("min", "loss"), val_every_n=Trigger(3, "steps"))
    assert result["step"] % 3 == 0


def test_a_value_that_will_never_come_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainingError, match=r"chosen by 'lav_acc' .* but LAV is off: --trainer.lav_every_n 1"):
        best_of(tmp_path / "lav", monkeypatch, ("max", "lav_acc"))
    with pytest.raises(TrainingError, match="chosen by 'val_acc' .* but there is no validation"):
        best_of(tmp_path / "val", monkeypatch, ("max", "val_acc"), val_every_n=Trigger(0))
    with pytest.raises(TrainingError, match=r"chosen by 'val_f1' .*but there are only acc, loss, val_acc, val_loss"):
        best_of(tmp_path / "name", monkeypatch, ("max", "f1"))
