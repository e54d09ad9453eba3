"""Keras metrics that create their variables in the first update: F1Score, R2Score, AUC of several labels."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from scena import ModelBase
from tests.model.test_training_model import NumberParams, Scale, Tensors, arrays, build, engine


class Late(ModelBase[NumberParams]):
    graph = Scale

    def __init__(self, params: NumberParams) -> None:
        super().__init__(params)
        self.f1 = keras.metrics.F1Score(average="macro", threshold=0.5)
        self.r2 = keras.metrics.R2Score()
        self.auc = keras.metrics.AUC(multi_label=True)

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": keras.losses.mean_squared_error(targets["y"], outputs["out"])}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
        both = targets["y"], outputs["out"]
        return {"f1": (self.f1, *both), "r2": (self.r2, *both), "auc": (self.auc, *both)}


@pytest.mark.parametrize("eager", [False, True])
def test_they_have_results_before_and_after_the_first_batch(eager: bool) -> None:
    model = build(Late(NumberParams())).training_model()
    model.compile(optimizer=keras.optimizers.SGD(0.0))
    before = {name: float(value) for name, value in model.results().items()}
    assert before == pytest.approx({"loss": 0, "f1": 0, "r2": np.nan, "auc": 0}, nan_ok=True), "nothing is counted yet"
    logs = engine(model, eager=eager).test(*arrays([0.5, 0.1, 0.4], [1, 0, 1]))  # outputs 1, 0.2, 0.8
    r2 = 1 - (0.2**2 + 0.2**2) / (2 / 3)
    assert logs == pytest.approx({"loss": 0.08 / 3 + 0.4, "f1": 1, "r2": r2, "auc": 1}, abs=1e-5)


class Unfit(ModelBase[NumberParams]):
    graph = Scale

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": keras.losses.mean_squared_error(targets["y"], outputs["out"])}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
        return {"acc": ops.cast(targets["y"][:, 0] == ops.zeros(4), "float32")}


def test_a_comparison_of_shapes_that_do_not_fit_is_named() -> None:
    with pytest.raises(Exception, match="^Unfit: the loss or metric 'acc' has no known shape"):
        build(Unfit(NumberParams())).training_model()


class Misspelt(ModelBase[NumberParams]):
    graph = Scale

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        raise AttributeError("module has no attribute 'no_such_loss'")


def test_an_error_in_a_loss_is_told_without_what_keras_wraps_around_it() -> None:
    with pytest.raises(Exception, match="Misspelt: a loss or metric fails") as caught:
        build(Misspelt(NumberParams())).training_model()
    text = str(caught.value)
    assert text.endswith("no attribute 'no_such_loss'.") and "_Symbolic" not in text
