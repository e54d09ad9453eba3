"""Things that are chosen by name: an engine and a backend that a module registers, and the errors about names that do not exist."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scena import CallbackParams, ParamsError, PredictorParams
from scena.data.engines.in_process import InProcessEngine
from scena.data.params import DataPipelineParams, PipelineMode
from scena.params import build, check
from scena.plugins import PluginError, find, names, register
from scena.training.callbacks.params import EarlyStoppingParams, TensorBoardParams
from tests.toy.data import ToyData
from tests.toy.params import HalvesParams, ToyDataParams
from tests.toy.scenario import ToyScenario

FORMAT_1 = Path(__file__).parents[1] / "scenario/format_1/best"


class CountingEngine(InProcessEngine):
    """Counts the batches that it makes."""

    made = 0

    def batches(self, cursor, repeat):  # type: ignore[no-untyped-def]
        for batch in super().batches(cursor, repeat):
            CountingEngine.made += 1
            yield batch


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("scena.plugins._registered", {})
    register("Engine", "counting", CountingEngine)
    yield


def test_an_engine_makes_the_batches() -> None:
    def labels(engine: str) -> list[list[int]]:
        params = check(DataPipelineParams(batch_size=6, engine=engine, num_processes=0))
        pipeline = ToyData(ToyDataParams()).create_pipeline(
            PipelineMode.TRAINING, params, HalvesParams(count=20), seed=3
        )
        with pipeline.stream(repeat=False) as batches:
            return [batch.targets["y"].tolist() for batch in batches]

    assert labels("counting") == labels("python")
    assert CountingEngine.made == 4


def test_an_unknown_engine_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        ParamsError, match="engine: expected one of python, counting, received 'count' .did you mean counting"
    ):
        check(DataPipelineParams(engine="count"))


def test_scenas_own_parts_are_found_by_the_same_names() -> None:
    assert names("Backend") == ["tensorflow", "jax"]
    assert find("Backend", "tensorflow").name == "tensorflow"
    with pytest.raises(PluginError, match="There is no Backend 'torch'. There are tensorflow, jax."):
        find("Backend", "torch")


def test_an_unknown_runtime_is_refused_with_those_there_are() -> None:
    with pytest.raises(ParamsError, match="runtime: unknown RuntimeParams 'onyx'.*choose from: keras"):
        ToyScenario.create_predictor(FORMAT_1, runtime="onyx")
    assert build({"runtime": {"class": "auto"}}, PredictorParams) == PredictorParams()


def test_callbacks_are_parameters() -> None:
    params = ToyScenario.default_trainer_params()
    assert _names(params.all_callbacks()) == ["Progress", "BestModel", "History", "TensorBoard", "EpochTable"]
    params.early_stopping.n_to_go, params.tensorboard.write, params.export_best, params.profile = 3, False, False, True
    params.callbacks = [EarlyStoppingParams(n_to_go=9)]
    assert _names(check(params).all_callbacks()) == [
        "Progress",
        "History",
        "Profiler",
        "EarlyStopping",
        "EarlyStopping",
        "EpochTable",
    ]
    params.callbacks = [TensorBoardParams()]
    check(params)
    params.tensorboard.write = True
    with pytest.raises(ParamsError, match="a training can have only one TensorBoard, and already has it"):
        check(params)


def _names(callbacks: list[CallbackParams]) -> list[str]:
    return [type(callback).__short_name__ for callback in callbacks]


def test_a_backend_of_another_package_predicts(tmp_path: Path) -> None:
    outputs = [
        sample.outputs["pred"].tolist()
        for sample in ToyScenario.create_predictor(FORMAT_1).predict(HalvesParams(count=8))
    ]
    predict = f"predict {FORMAT_1} --data.count 8 --out {tmp_path}/out.jsonl --pipeline.num_processes 0"
    train = f"train tests.toy --trainer.output_dir {tmp_path}/run"
    done = subprocess.run(
        [sys.executable, "-m", "tests.plugins.numpy_backend", predict, "then", train],
        env={**os.environ, "KERAS_BACKEND": "numpy"},
        capture_output=True,
        text=True,
        check=False,
    )
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["outputs"]["pred"] for row in written] == [pytest.approx(one, abs=1e-5) for one in outputs]
    assert "The backend numpy can only predict. Train and evaluate with KERAS_BACKEND=tensorflow." in done.stderr
