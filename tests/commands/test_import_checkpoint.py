"""Checkpoints of TensorFlow 2 and 1 become models of a scenario."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from scena.commands.main import main
from scena.scenario.stored import load_export
from tests.faults.survivor.scenario import SurvivorScenario

SCENARIO = "tests.faults.survivor"


def keras_model() -> keras.Model:
    source = keras.Input((8,))
    x = keras.layers.BatchNormalization(name="norm")(keras.layers.Dense(6, name="hidden")(source))
    model = keras.Model(source, keras.layers.Dense(2, name="out")(x))
    rng = np.random.default_rng(0)
    for variable in model.variables:
        variable.assign(rng.uniform(0.5, 1, variable.shape))
    return model


def weights(directory: Path) -> list[np.ndarray]:
    """The weights of an export: dense, normalisation, dense."""
    variables = load_export(directory, SurvivorScenario).build().prediction_model.variables
    return [keras.ops.convert_to_numpy(variable.value) for variable in variables if "seed" not in variable.path]


def test_a_keras_checkpoint_with_its_optimizer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = keras_model()
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    prefix = tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(tmp_path / "ckpt"))
    rule = "norm/=batch_normalization/"  # the name that the variable itself had
    assert main(["import-checkpoint", prefix, SCENARIO, "--map", rule, "--out", str(tmp_path / "out")]) == 0
    for variable, value in zip(model.variables, weights(tmp_path / "out"), strict=True):
        np.testing.assert_array_equal(value, keras.ops.convert_to_numpy(variable.value))
    shown = capsys.readouterr().out
    assert "optimizer/_trainable_variables/0" in shown
    assert "counters and values of optimizers are skipped" in shown
    assert json.loads((tmp_path / "out/scenario.json").read_text())["result"] == {"imported_from": prefix}


def test_a_checkpoint_of_tensorflow_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        for scope, shape in (("net/fc1", (8, 6)), ("net/fc2", (6, 2))):
            with v1.variable_scope(scope):
                v1.get_variable("weights", shape)
                v1.get_variable("biases", shape[1:])
        for name in ("gamma", "beta", "moving_mean", "moving_variance"):
            v1.get_variable(f"net/bn/{name}", (6,))
        v1.get_variable("net/extra", (3,))
        loss = tf.add_n([tf.reduce_sum(variable) for variable in v1.trainable_variables()])
        v1.train.AdamOptimizer().minimize(loss, global_step=v1.train.get_or_create_global_step())
        session.run(v1.global_variables_initializer())
        prefix = v1.train.Saver().save(session, str(tmp_path / "model.ckpt"), 100)
        expected = session.run(next(v for v in v1.trainable_variables() if v.op.name == "net/fc2/weights"))
    rules = ["weights=kernel", "biases=bias", "net/fc1=dense", "net/fc2=dense_1", "net/bn=batch_normalization"]
    status = main(["import-checkpoint", prefix, SCENARIO, "--map", *rules, "--out", str(tmp_path / "out")])
    shown = capsys.readouterr()
    assert status == 0, shown.err
    np.testing.assert_array_equal(weights(tmp_path / "out")[-2], expected)
    assert "net/extra" in shown.out
    assert "not in the model (3,)" in shown.out


def test_what_does_not_match_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tf.Module()
    module.kernel = tf.Variable(np.ones((8, 6), "float32"))
    module.bias = tf.Variable(np.ones(7, "float32"))
    prefix = tf.train.Checkpoint(net=module).save(str(tmp_path / "ckpt"))
    command = [
        "import-checkpoint",
        prefix,
        SCENARIO,
        "--out",
        str(tmp_path / "out"),
        "--map",
        "net/=survivor_graph/dense/",
    ]
    assert main(command) == 1
    shown = capsys.readouterr()
    assert "shape (7,), the model has (6,)" in shown.out
    assert "not in the checkpoint" in shown.out
    assert "1 of the model's variables were found, 6 are missing and 1 have another shape" in shown.err
    assert not (tmp_path / "out").exists()
    assert main([*command, "--partial"]) == 0
    assert (tmp_path / "out/model.keras").is_file()


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (
            ["nowhere/model.ckpt", SCENARIO, "--out", "x"],
            1,
            "There is no checkpoint nowhere/model.ckpt. Give its prefix,",
        ),
        ([__file__, SCENARIO, "--out", "x"], 1, "is not a checkpoint of TensorFlow, or is damaged"),
        (["nowhere/model.ckpt", SCENARIO], 2, "--out is required"),
        (
            ["nowhere/model.ckpt", SCENARIO, "--out", "x", "--map", "a(=b"],
            2,
            "expected a regular expression before '='",
        ),
        (["nowhere/model.ckpt", SCENARIO, "--out", "x", "--map", "ab"], 2, "expected a rule such as"),
        ([], 2, "name the checkpoint first: scena import-checkpoint CHECKPOINT SCENARIO"),
    ],
)
def test_wrong_arguments(words: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import-checkpoint", *words]) == status
    assert message in capsys.readouterr().err
