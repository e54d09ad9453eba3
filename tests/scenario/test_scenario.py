"""What a scenario gives: training, LAV, prediction, resources and static parameters, from Python."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena import DataPipelineParams, LAVParams, ParamsError, PredictorParams, Resource, Sample
from scena.testing import run_scenario_test
from scena.training.checkpoint.resume import Resumption
from scena.training.trigger import Trigger
from tests.toy.params import HalvesParams
from tests.toy.scenario import ToyScenario


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A run of twelve epochs, and its history."""
    folder = tmp_path_factory.mktemp("toy")
    (folder / "names.txt").write_text("left right")
    params = ToyScenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed = 12, folder / "run", 3
    params.learning_rate.lr = 0.05
    params.scenario.data.names = Resource(folder / "names.txt")
    params.lav_every_n = Trigger(4)
    history = ToyScenario.create_trainer(params).train()
    return folder / "run", history


def test_the_toy_scenario_keeps_the_contract(tmp_path: Path) -> None:
    run_scenario_test(ToyScenario, directory=tmp_path)


def test_training_learns(trained: tuple[Path, list[dict[str, Any]]]) -> None:
    _, history = trained
    assert len(history) == 12
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]
    assert max(row["val_acc"] for row in history) > 0.85


def test_the_run_directory_is_complete(trained: tuple[Path, list[dict[str, Any]]]) -> None:
    run, history = trained
    for name in ("trainer_params.json", "train.log", "history.csv", "tensorboard", "checkpoint", "best", "export"):
        assert (run / name).exists(), name
    for name in ("best", "export"):
        assert {"model.keras", "saved_model", "scenario.json", "resources"} <= {p.name for p in (run / name).iterdir()}
    assert len((run / "history.csv").read_text().splitlines()) == 1 + len(history)
    assert "Epoch 12/12" in (run / "train.log").read_text()


def test_lav_runs_at_the_first_the_last_and_every_fourth_epoch(trained: tuple[Path, list[dict[str, Any]]]) -> None:
    _, history = trained
    assert [row["epoch"] for row in history if "lav_loss" in row] == [1, 4, 8, 12]


def test_lav_of_the_best_model_gives_the_best_value_of_the_training(
    trained: tuple[Path, list[dict[str, Any]]],
) -> None:
    run, history = trained
    results = ToyScenario.create_lav(run / "best").run(HalvesParams())
    assert results["acc"] == pytest.approx(max(row["val_acc"] for row in history), abs=1e-6)
    stored = json.loads((run / "best" / "scenario.json").read_text())["result"]
    assert results["acc"] == pytest.approx(stored["val_acc"], abs=1e-6)


def test_tensorboard_has_all_values_of_training_validation_and_lav(
    trained: tuple[Path, list[dict[str, Any]]],
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    run, history = trained
    found = {}
    for name in ("train", "val", "lav"):
        events = EventAccumulator(str(run / "tensorboard" / name), size_guidance={"tensors": 0}).Reload()
        for tag in events.Tags()["tensors"]:
            if events.SummaryMetadata(tag).plugin_data.plugin_name != "scalars":
                continue
            found[name, tag] = [float(make_ndarray(event.tensor_proto)) for event in events.Tensors(tag)]
    for name, prefix in (("train", ""), ("val", "val_"), ("lav", "lav_")):
        for tag in ("loss", "acc"):
            expected = [row[f"{prefix}{tag}"] for row in history if f"{prefix}{tag}" in row]
            assert found[name, tag] == pytest.approx(expected)
    assert found["train", "learning_rate"] == pytest.approx([0.05] * 12)


def test_a_moved_export_finds_its_resources(
    trained: tuple[Path, list[dict[str, Any]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = trained
    shutil.copytree(run / "best", tmp_path / "moved")
    predictor = ToyScenario.create_predictor(tmp_path / "moved", PredictorParams())
    assert predictor.data.names() == ["left", "right"]
    assert Path(predictor.data.params.names).is_relative_to(tmp_path)
    for sample in predictor.predict(HalvesParams(count=2)):
        predictor.print_prediction(sample)
    assert capsys.readouterr().out.splitlines()[0] in ("0: left", "0: right")


def test_raw_samples_are_predicted_in_order_without_targets(trained: tuple[Path, list[dict[str, Any]]]) -> None:
    run, _ = trained
    predictor = ToyScenario.create_predictor(run / "best", PredictorParams(pipeline=DataPipelineParams(batch_size=4)))
    samples = [Sample(inputs={"x": np.full(8, number, "float32")}, meta=number) for number in range(10)]
    predicted = list(predictor.predict_raw(samples))
    assert [sample.meta for sample in predicted] == list(range(10))
    assert all(sample.outputs["pred"].shape == (2,) for sample in predicted)


def test_several_models_vote_with_the_mean_of_their_probabilities(
    trained: tuple[Path, list[dict[str, Any]]],
) -> None:
    run, _ = trained
    source = HalvesParams(count=5)
    singles = [list(ToyScenario.create_predictor(run / name).predict(source)) for name in ("best", "export")]
    voted = list(ToyScenario.create_predictor([run / "best", run / "export"]).predict(source))
    for one, two, both in zip(*singles, voted, strict=True):
        assert both.outputs["pred"] == pytest.approx((one.outputs["pred"] + two.outputs["pred"]) / 2)


def test_lav_on_other_data_and_limits(trained: tuple[Path, list[dict[str, Any]]]) -> None:
    run, _ = trained
    params = LAVParams(pipeline=DataPipelineParams(limit=10, batch_size=3))
    right = ToyScenario.create_lav(run / "best", params).run(HalvesParams(count=50))["acc"] * 10
    assert right == pytest.approx(round(right), abs=1e-5)


def test_a_run_of_older_rules_says_that_its_samples_are_others(
    trained: tuple[Path, list[dict[str, Any]]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = "was made by an earlier Scena: a limit took the first samples then"
    run = tmp_path / "run"
    shutil.copytree(trained[0], run)
    params = ToyScenario.default_trainer_params()
    params.output_dir = run
    scenario = ToyScenario(params.scenario)
    ToyScenario.create_lav(run / "best")
    Resumption(run, params, scenario).report()
    assert said not in caplog.text
    for file in (run / "best" / "scenario.json", run / "trainer_params.json"):
        stored = json.loads(file.read_text())
        del stored["rules"]
        file.write_text(json.dumps(stored))
    ToyScenario.create_lav(run / "best")
    assert f"{run / 'best'} {said}" in caplog.text
    caplog.clear()
    Resumption(run, params, scenario).report()
    assert f"{run} {said}" in caplog.text


def test_the_same_parameters_train_the_same_model(trained: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    from scena.scenario.stored import read_description, stored_params

    run, history = trained
    params = stored_params(read_description(run / "trainer_params.json"), ToyScenario, run)
    params.output_dir = tmp_path / "again"
    again = ToyScenario.create_trainer(params).train()
    assert [row["loss"] for row in again] == [row["loss"] for row in history]


def test_resume_goes_on_with_more_epochs(trained: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    from scena.scenario.stored import read_description, stored_params

    run, history = trained
    shutil.copytree(run, tmp_path / "run")
    params = stored_params(read_description(tmp_path / "run" / "trainer_params.json"), ToyScenario, run)
    params.output_dir, params.epochs = tmp_path / "run", 14
    longer = ToyScenario.create_trainer(params).train(resume=True)
    assert [row["epoch"] for row in longer] == list(range(1, 15))
    assert longer[:11] == history[:11]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epochs", "3", "epochs: expected a whole number, received '3'"),
        ("epochs", 0, "epochs must be >= 1, received 0"),
        ("random_seed", -1, "random_seed must be >= 0, received -1"),
        ("random_seed", 2**32, "random_seed must be < 4294967296, received 4294967296"),
        (
            "precision",
            "float17",
            "precision: expected one of float32, mixed_float16, mixed_bfloat16, received 'float17'",
        ),
        ("optimizer", HalvesParams(), "optimizer: unknown OptimizerParams 'Halves'; choose from: Adam"),
        ("gen", HalvesParams(), "ToyScenario.create_trainer expects trainer parameters whose gen is TrainValParams"),
    ],
)
def test_wrong_values_from_python_are_refused_as_on_the_command_line(name: str, value: Any, message: str) -> None:
    params: Any = ToyScenario.default_trainer_params()
    setattr(params, name, value)
    with pytest.raises(ParamsError) as caught:
        ToyScenario.create_trainer(params)
    assert str(caught.value).startswith(message)


def test_what_is_set_wrong_later_is_found_when_the_training_starts(tmp_path: Path) -> None:
    params = ToyScenario.default_trainer_params()
    params.output_dir = tmp_path / "run"
    trainer = ToyScenario.create_trainer(params)
    params.gen.train.batch_size = "7"  # type: ignore[assignment]
    with pytest.raises(ParamsError, match=r"^gen\.train\.batch_size: expected a whole number, received '7'$"):
        trainer.train()
    assert not (tmp_path / "run").exists()


def test_wrong_values_for_lav_and_prediction_are_refused(tmp_path: Path) -> None:
    wrong: Any = {"batch_size": "7"}
    message = r"^pipeline\.batch_size: expected a whole number, received '7'$"
    with pytest.raises(ParamsError, match=message):
        ToyScenario.create_lav(tmp_path, LAVParams(pipeline=DataPipelineParams(**wrong)))
    with pytest.raises(ParamsError, match=message):
        ToyScenario.create_multi_lav([tmp_path], LAVParams(pipeline=DataPipelineParams(**wrong)))
    with pytest.raises(ParamsError, match=message):
        ToyScenario.create_predictor(tmp_path, PredictorParams(pipeline=DataPipelineParams(**wrong)))
