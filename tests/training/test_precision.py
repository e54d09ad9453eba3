"""Mixed precision, XLA, determinism and the input-gradient penalty: what they change, and what they must not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from scena.commands.main import main
from scena.errors import ModelError
from scena.training.optimizers.params import SGD
from scena.training.prepare import prepare_run
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import toy_params, train_toy, trained_weights


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_layers_compute_in_half_precision_and_all_that_is_seen_is_float32(tmp_path: Path, precision: str) -> None:
    params = toy_params(tmp_path, precision=precision)
    run = prepare_run(params, ToyScenario(params.scenario), tmp_path)
    graph: Any = run.built.root.graph
    assert graph.hidden.compute_dtype == precision.removeprefix("mixed_")
    assert {weight.dtype for weight in run.model.trainable_variables} == {"float32"}
    data = {"inputs": {"x": np.ones((2, 8), "float32")}, "targets": {"y": np.zeros(2, "int32")}}
    for outputs in (run.model(data), run.built.prediction_model(data["inputs"])):
        assert {str(keras.backend.standardize_dtype(value.dtype)) for value in outputs.values()} == {"float32"}
    assert isinstance(run.model.optimizer, keras.optimizers.LossScaleOptimizer) == (precision == "mixed_float16")
    assert keras.config.dtype_policy().name == "float32"  # what comes after is as before


@pytest.mark.parametrize("precision", [pytest.param("mixed_bfloat16", marks=pytest.mark.long), "mixed_float16"])
def test_a_training_in_half_precision_is_close_to_a_full_one_and_its_export_predicts(
    tmp_path: Path, precision: str
) -> None:
    same: dict[str, Any] = {"scenario__model__dropout": 0.0, "ema_decay": 0.9, "export_final": True}
    full = train_toy(tmp_path / "full", **same).history
    half = train_toy(tmp_path / "half", precision=precision, **same).history
    assert half[-1]["loss"] == pytest.approx(full[-1]["loss"], rel=0.02)
    assert half != full
    predictor = ToyScenario.create_predictor(tmp_path / "half" / "export")
    assert predictor.built.prediction_model.outputs[0].dtype == "float32"


def test_loss_scale_is_state_of_the_checkpoint(tmp_path: Path) -> None:
    params = toy_params(tmp_path, precision="mixed_float16")
    optimizer: Any = prepare_run(params, ToyScenario(params.scenario), tmp_path).model.optimizer
    assert any(optimizer.dynamic_scale is variable for variable in optimizer.variables)


def test_xla_gives_the_same_training_to_rounding(tmp_path: Path) -> None:
    plain = trained_weights(tmp_path / "plain", scenario__model__dropout=0.0)
    compiled = trained_weights(tmp_path / "xla", xla=True, scenario__model__dropout=0.0)
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_xla_and_eager_exclude_each_other(capsys: Any) -> None:
    assert main(["params", "tests.toy", "--trainer.xla", "--trainer.force_eager"]) == 2
    assert "choose one of xla and force_eager" in capsys.readouterr().err


DETERMINISTIC = """
import sys
from scena.commands.main import main
status = main(["train", "examples.tutorial.min", "--trainer.epochs", "1", "--train.limit", "32", "--val.limit", "16", *sys.argv[1:]])
from tensorflow.python.framework.config import is_op_determinism_enabled
print("deterministic", is_op_determinism_enabled())
sys.exit(status)
"""


def run_apart(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", DETERMINISTIC, *flags], capture_output=True, text=True, check=False)


@pytest.mark.long
def test_deterministic_is_switched_on_and_refused_with_xla_where_an_operation_cannot(tmp_path: Path) -> None:
    alone = run_apart("--trainer.output_dir", str(tmp_path / "one"), "--trainer.deterministic")
    assert alone.returncode == 0, alone.stderr
    assert "deterministic True" in alone.stdout
    both = run_apart("--trainer.output_dir", str(tmp_path / "two"), "--trainer.deterministic", "--trainer.xla")
    assert both.returncode == 1
    assert "MaxPool" in both.stderr and "--trainer.xla" in both.stderr


def test_the_input_gradient_penalty_is_the_mean_square_of_the_samples_gradients(tmp_path: Path) -> None:
    params = toy_params(
        tmp_path, input_gradient_penalty=0.3, scenario__model__dropout=0.0, optimizer=SGD(), learning_rate__lr=1.0
    )
    run = prepare_run(params, ToyScenario(params.scenario), tmp_path)
    plain = prepare_run(params.replace(input_gradient_penalty=0.0), ToyScenario(params.scenario), tmp_path)
    x = np.random.default_rng(1).normal(size=(5, 8)).astype("float32")
    y = np.array([0, 1, 1, 0, 1], "int32")
    weights = [np.asarray(w.value, "float64") for w in run.model.trainable_variables]

    def gradient(sample: np.ndarray, label: int, w: list[np.ndarray]) -> np.ndarray:
        hidden = np.tanh(sample @ w[0] + w[1])
        logits = hidden @ w[2] + w[3]
        p = np.exp(logits - logits.max())
        p /= p.sum()
        p[label] -= 1
        return np.asarray(w[0] @ ((1 - hidden**2) * (w[2] @ p)))

    def penalty(w: list[np.ndarray]) -> float:
        return float(np.mean([np.sum(gradient(sample, label, w) ** 2) for sample, label in zip(x, y, strict=True)]))

    before = penalty(weights)
    logs = run.engine.train({"x": x[None]}, {"y": y[None]})[0]
    assert logs["input_gradient"] == pytest.approx(before, rel=1e-4)
    plain.engine.train({"x": x[None]}, {"y": y[None]})
    # the two trainings differ by lr · weight · gradient of the penalty, here taken from differences
    for index in (0, 2):
        made = np.asarray(plain.model.trainable_variables[index].value) - np.asarray(
            run.model.trainable_variables[index].value
        )
        for position in [(0, 0), (1, 1), (3, 0)]:
            moved = [w.copy() for w in weights]
            moved[index][position] += 1e-5
            expected = 0.3 * (penalty(moved) - before) / 1e-5
            assert made[position] == pytest.approx(expected, abs=1e-4)


def test_the_penalty_needs_an_input_with_a_gradient(tmp_path: Path) -> None:
    from examples.tutorial.min.scenario import TutorialScenario

    params = TutorialScenario.default_trainer_params()
    params.input_gradient_penalty = 0.1
    with pytest.raises(ModelError, match="needs an input of floating-point numbers. There are img: uint8"):
        prepare_run(params, TutorialScenario(params.scenario), tmp_path)


def test_parameters_of_a_run_say_so(tmp_path: Path) -> None:
    train_toy(tmp_path / "run", precision="mixed_bfloat16", epochs=1)
    assert "mixed_bfloat16" in json.dumps(json.loads((tmp_path / "run" / "trainer_params.json").read_text()))
