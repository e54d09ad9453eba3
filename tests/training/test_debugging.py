"""Debugging aids: eager mode, a check on real data, tensors that are not finite, the table of epochs."""

import logging
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from scena import ScenarioBaseParams
from scena.errors import ModelError, TrainingError
from scena.training.callbacks.history import format_table, format_times
from tests.toy.model import ToyGraph, ToyModel
from tests.toy.params import ToyModelParams, ToyScenarioParams
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import train_toy, trained_weights, weights_hash


class Bad(keras.layers.Layer):
    """Fails, or gives what is not a number."""

    def __init__(self, how: str) -> None:
        super().__init__(name="bad_layer")
        self.how = how

    def call(self, x: Any) -> Any:
        if self.how == "shape":
            return ops.reshape(x, (3, 5))
        return ops.log(x - 1e6) if self.how == "nan" else x


class BadGraph(ToyGraph):
    def __init__(self, params: Any, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.bad = Bad(params.wrong)

    def build_graph(self, inputs: Any, training: bool | None = None) -> Any:
        outputs = super().build_graph({"x": self.bad(inputs["x"])}, training)
        return {"logits": outputs["logits"]} if self.params.wrong == "output" else outputs


class BadModel(ToyModel):
    calls = 0

    def create_graph(self) -> Any:
        return BadGraph(self.params)

    def _loss(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        BadModel.calls += 1
        return super()._loss(inputs, targets, outputs)


class BadModelParams(ToyModelParams, builds=":BadModel"):
    """With a mistake."""


class BadScenario(ToyScenario):
    @classmethod
    def default_params(cls) -> ToyScenarioParams:
        return ToyScenarioParams(model=BadModelParams())


def bad(directory: Path, wrong: str, **settings: Any) -> Any:
    return train_toy(directory / "run", scenario=BadScenario, scenario__model__wrong=wrong, **settings)


DEBUG = {"scenario__debug_graph_construction": True}


def test_real_data_is_shown_at_each_stage_and_the_training_is_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = trained_weights(tmp_path / "plain")
    with caplog.at_level(logging.INFO, logger="scena"):
        checked = trained_weights(tmp_path / "checked", **DEBUG)
    assert weights_hash(plain) == weights_hash(checked)
    for line in [
        "input x: (16, 8) float32, ",
        "target y: (16,) int32, 0 to 1",
        "output of the prediction graph pred: (16, 2) float32",
        "output of the training graph logits: (16, 2) float32",
        "loss loss: (16,) float32",
        "metric acc: () float32",
    ]:
        assert line in caplog.text


def test_a_layer_that_fails_is_named_with_its_line_and_what_it_was_given(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        bad(tmp_path, "shape", **DEBUG)
    text = str(error.value)
    assert "the prediction graph fails in the layer" in text and "bad_layer" in text
    assert "test_debugging.py:" in text
    assert "inputs: x (16, 8) float32" in text and "targets: y (16,) int32" in text


def test_a_missing_output_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        bad(tmp_path, "output", **DEBUG)
    text = str(error.value)
    assert "_metric fails at model.py:" in text and "there is no 'pred'" in text
    assert "outputs: logits (16, 2) float32" in text


def test_what_is_not_finite_is_seen_before_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="scena"), pytest.raises(TrainingError):
        bad(tmp_path, "nan", **DEBUG)
    assert "output of the training graph logits: (16, 2) float32, 32 NOT FINITE" in caplog.text


def test_the_first_tensor_that_is_not_finite_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as error:
        bad(tmp_path, "nan", check_numerics=True)
    text = str(error.value)
    assert "is the result of Log of " in text and "bad_layer" in text
    assert "at test_debugging.py:" in text and "(shape (None, 8))" in text
    assert train_toy(tmp_path / "after").history  # it is switched off again


def test_data_that_is_not_finite_is_named(tmp_path: Path) -> None:
    for settings in ({"check_numerics": True}, {}):
        with pytest.raises(TrainingError, match=r"[Tt]he input 'x' is nan at \[0\] in the sample with meta \{'index'"):
            train_toy(tmp_path / str(len(settings)), gen__train_val__bad="nan", **settings)


def test_without_the_check_the_error_says_how_to_find_out(tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match="The loss is nan at step 1.*--trainer.check_numerics names the first tensor"
    ):
        bad(tmp_path, "nan")


def test_eager_mode_runs_python_at_each_step_and_trains_the_same(tmp_path: Path) -> None:
    compiled = trained_weights(tmp_path / "compiled", scenario__model__dropout=0.0)
    eager = trained_weights(tmp_path / "eager", scenario__model__dropout=0.0, force_eager=True)
    for one, other in zip(compiled, eager, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    BadModel.calls = 0
    bad(tmp_path, "", force_eager=True, epochs=1)
    assert BadModel.calls >= 8  # four steps and four batches of validation, each through Python


def test_the_table_of_epochs() -> None:
    rows = [
        {"epoch": n, "step": 4 * n, "learning_rate": 0.001, "seconds": 1.5, "loss": 1 / n, "val_acc": n / 40}
        for n in range(1, 31)
    ]
    lines = format_table(rows, best=3).splitlines()
    assert lines[0].split() == ["epoch", "step", "learning_rate", "loss", "val_acc", "seconds"]
    assert lines[1].split() == ["*", "3", "12", "0.001", "0.3333", "0.075", "1.5"]
    assert len(lines) == 22 and len({len(line) for line in lines}) == 1
    times = {"data": 1.0, "step": 5.0, "validation": 2.0, "checkpoint": 0.5, "total": 10.0}
    assert format_times(times) == (
        "Time: 10.0 s (waiting for data 10 %, steps 50 %, validation 20 %, checkpoints 5 %, other 15 %)"
    )


def test_a_training_says_where_its_time_went(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="scena"):
        train_toy(tmp_path / "run")
    assert "Time: " in caplog.text and "waiting for data" in caplog.text
    assert ScenarioBaseParams is not None
