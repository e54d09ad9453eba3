"""`no_train_scope`: a matched layer, and all inside it, keep their weights."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from scena.commands.main import main
from scena.errors import TrainingError
from scena.training.prepare import freeze_layers, prepare_run
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import toy_params, train_toy


class AllWeights(keras.callbacks.Callback):
    """All weights by path, before and after."""

    def read(self) -> dict[str, np.ndarray]:
        return {weight.path: np.asarray(weight.value) for weight in self.model.weights}

    def on_train_begin(self, logs: Any = None) -> None:
        self.before = self.read()

    def on_train_end(self, logs: Any = None) -> None:
        self.after = self.read()


def test_a_matched_layer_is_not_trained(tmp_path: Path) -> None:
    weights = AllWeights()
    train_toy(tmp_path / "run", [weights], no_train_scope=".*/hidden", ema_decay=0.9)
    changed = [path.split("/", 2)[2] for path in weights.before if (weights.before[path] != weights.after[path]).any()]
    assert changed == ["logits/kernel", "logits/bias"]


class Inner(keras.layers.Layer):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.one = keras.layers.Dense(2, name="conv_one")
        self.two = keras.layers.Dense(2, name="two")

    def call(self, x: Any) -> Any:
        return self.two(self.one(x))


class Outer(keras.layers.Layer):
    def __init__(self) -> None:
        super().__init__(name="root")
        self.inner = Inner(name="inner")
        self.head = keras.layers.Dense(1, name="head")

    def call(self, x: Any) -> Any:
        return self.head(self.inner(x))


def outer() -> Any:
    layer = Outer()
    layer(np.ones((1, 3), "float32"))
    return layer


def test_a_matched_parent_takes_its_children_with_it() -> None:
    layer = outer()
    assert freeze_layers(layer, ".*inner") == ["root/inner"]
    assert [weight.path for weight in layer.trainable_variables] == ["root/head/kernel", "root/head/bias"]
    layer = outer()
    assert freeze_layers(layer, ".*conv.*") == ["root/inner/conv_one"]
    assert len(layer.trainable_variables) == 4


def test_a_pattern_that_matches_nothing_lists_the_layers(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"'conv' matches no layer. The layers are:\n  root/head\n  root/inner"):
        freeze_layers(outer(), "conv")
    with pytest.raises(TrainingError, match="leaves nothing to train"):
        freeze_layers(outer(), ".*")


def test_frozen_layers_have_no_optimizer_state(tmp_path: Path) -> None:
    params = toy_params(tmp_path)
    everything = len(prepare_run(params, ToyScenario(params.scenario), tmp_path).model.optimizer.variables)
    params.no_train_scope = ".*/hidden"
    some = len(prepare_run(params, ToyScenario(params.scenario), tmp_path).model.optimizer.variables)
    assert everything - some == 4  # two moments of kernel and bias


def test_a_broken_regular_expression_is_named(capsys: Any) -> None:
    assert main(["params", "tests.toy", "--trainer.no_train_scope", "("]) == 2
    assert "no_train_scope is not a regular expression" in capsys.readouterr().err
