"""An export outlives its training: what only a training needs is a record that no reader builds; older formats stay readable."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from scena import LAVParams, PredictorParams
from scena.commands.main import main
from scena.scenario.stored import load_export
from tests.toy.params import HalvesParams
from tests.toy.scenario import ToyScenario

FORMAT_1 = Path(__file__).with_name("format_1")
"""A run as Scena wrote it before exports had a format of their own (commit e295332)."""


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The best model of a short training."""
    params = ToyScenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed = 1, tmp_path_factory.mktemp("toy") / "run", 3
    ToyScenario.create_trainer(params).train()
    return params.output_dir / "best"


def predictions(directory: Path) -> list[float]:
    predictor = ToyScenario.create_predictor(directory, PredictorParams())
    return [float(sample.outputs["pred"][0]) for sample in predictor.predict(HalvesParams(count=8))]


def test_an_export_holds_what_a_prediction_needs_and_a_record_of_the_rest(export: Path) -> None:
    description = json.loads((export / "scenario.json").read_text())
    assert description["format"] == 2
    assert description["params"]["model"]["units"] == 4
    assert description["pipelines"]["train_val"]["count"] == 64
    assert description["trainer"]["optimizer"]["class"] == "Adam"
    assert not {"scenario", "gen"} & set(description["trainer"])


@pytest.mark.parametrize(
    "change",
    [
        lambda trainer: trainer["optimizer"].update({"class": "OptimizerOfAPluginThatIsGone"}),
        lambda trainer: trainer.update(a_flag_that_was_removed=3),
        lambda trainer: trainer["tensorboard"].update(images=True),
    ],
    ids=["optimizer", "flag", "tensorboard"],
)
def test_a_training_that_can_no_longer_be_described_predicts_as_before(
    export: Path, tmp_path: Path, change: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = predictions(export)
    copy = Path(shutil.copytree(export, tmp_path / "best"))
    description = json.loads((copy / "scenario.json").read_text())
    change(description["trainer"])
    (copy / "scenario.json").write_text(json.dumps(description))
    assert predictions(copy) == expected
    assert main(["lav", str(copy), "--dump", str(tmp_path / "dump.jsonl")]) == 0
    assert main(["evaluate-dump", str(tmp_path / "dump.jsonl")]) == 0
    assert main(["adapt", str(copy), "--out", str(tmp_path / "adapted"), "--model.dropout", "0.2"]) == 0
    capsys.readouterr()


def test_an_export_of_the_first_format_loads() -> None:
    result = ToyScenario.create_lav(FORMAT_1 / "best", LAVParams()).run(HalvesParams())
    assert result["loss"] == pytest.approx(0.6495987921953201, abs=1e-6)
    assert result["acc"] == pytest.approx(0.671875)


def test_a_run_of_the_first_format_resumes(tmp_path: Path) -> None:
    run = Path(shutil.copytree(FORMAT_1, tmp_path / "run"))
    assert main(["resume", str(run), "--trainer.epochs", "3"]) == 0
    assert len((run / "history.csv").read_text().splitlines()) == 4


def test_an_opened_export_is_not_read_again(export: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(export, tmp_path / "best"))
    opened = load_export(copy, ToyScenario)
    (copy / "scenario.json").unlink()
    assert ToyScenario.create_lav(opened, LAVParams()).run(HalvesParams(count=8))["loss"] > 0
    assert list(ToyScenario.create_predictor(opened, PredictorParams()).predict(HalvesParams(count=1)))


def test_imports_of_a_run_are_named_where_they_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(FORMAT_1, tmp_path / "run"))
    description = json.loads((run / "trainer_params.json").read_text())
    description["trainer"]["optimizer"]["class"] = "Mine"
    (run / "trainer_params.json").write_text(json.dumps({**description, "imports": ["my_optimizers"]}))
    assert main(["resume", str(run)]) == 1
    text = capsys.readouterr().err
    assert "unknown OptimizerParams 'Mine'" in text
    assert "The run was made with --import my_optimizers; give that here, too." in text


def test_the_scenario_decides_about_the_class_of_its_parameters(export: Path, tmp_path: Path) -> None:
    """A params class that was renamed, or replaced by `Scenario[Data, Model, …]`, does not make exports unreadable."""
    copy = Path(shutil.copytree(export, tmp_path / "best"))
    description = json.loads((copy / "scenario.json").read_text())
    description["params"]["class"] = "NameOfFormerTimes"
    (copy / "scenario.json").write_text(json.dumps(description))
    assert predictions(copy) == predictions(export)
