"""Losses and metrics that are sums over the batch are found; means, values for each sample and Keras' own sums are not."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

from scena import ArraySpec, DataBase, DataBaseParams, GraphBase, ModelBase, ModelBaseParams
from scena.model.built import BuiltModel
from scena.model.measures.batch_checks import mistakes
from tests.toy.model import ToyModel
from tests.toy.params import ToyModelParams, ToyScenarioParams
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import train_toy

Tensors = dict[str, Any]


class PointData(DataBase[DataBaseParams]):
    inputs = {"x": ArraySpec((3,), "float32")}
    targets = {"y": ArraySpec((), "float32")}


class Points(GraphBase[ModelBaseParams]):
    """Normalized over the batch in training, and with an output that has no sample axis."""

    def __init__(self, params: ModelBaseParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.dense, self.norm, self.drop = layers.Dense(4), layers.BatchNormalization(), layers.Dropout(0.5)

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        x = self.drop(self.norm(self.dense(inputs["x"]), training=training), training=training)
        return {"x": x, "p": ops.sigmoid(x[:, 0]), "squares": ops.sum(x**2), "mean": ops.mean(x**2)}


def found(
    loss: Callable[[Any, Tensors], Any], metrics: Callable[[Any, Tensors], Any] = lambda y, outputs: {}
) -> list[str]:
    """The names that are found with this loss and these metrics."""

    class Model(ModelBase[ModelBaseParams]):
        def __init__(self, params: ModelBaseParams) -> None:
            super().__init__(params)
            self.positives, self.auc = keras.metrics.TruePositives(), keras.metrics.AUC()
            self.sum, self.mean = keras.metrics.Sum(), keras.metrics.Mean()

        def create_graph(self) -> Points:
            return Points(self.params)

        def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
            return {"loss": loss(targets["y"], outputs)}

        def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
            return {
                name: (getattr(self, name), *value) if isinstance(value, tuple) else value
                for name, value in metrics(targets["y"], outputs).items()
            }

    model = Model(ModelBaseParams())
    training = BuiltModel(PointData(DataBaseParams()), model, model.create_root_graph()).training_model()
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 3)).astype("float32"), np.array([0, 1, 1, 0, 1], "float32")
    before = [np.array(variable) for variable in training.variables]
    lines = mistakes(training, {"x": x}, {"y": y})
    assert all(np.array_equal(one, other) for one, other in zip(before, training.variables, strict=True))
    assert all("is a sum over the batch: it doubles with the number of samples" in line for line in lines)
    return [line.split("'")[1] for line in lines]


def error(y: Any, outputs: Tensors) -> Any:
    return ops.square(y - outputs["p"])


SUMS: dict[str, Callable[[Any, Tensors], Any]] = {
    "sum": lambda y, outputs: ops.sum(error(y, outputs)),
    "divided by a fixed size": lambda y, outputs: ops.sum(error(y, outputs)) / 32,
    "sum of Keras": lambda y, outputs: keras.losses.MeanSquaredError(reduction="sum")(
        y[:, None], outputs["p"][:, None]
    ),
    "sum inside the graph": lambda y, outputs: outputs["squares"],
}


@pytest.mark.parametrize("kind", SUMS)
def test_a_loss_that_sums_is_found(kind: str) -> None:
    assert found(SUMS[kind]) == ["loss"]


def test_metrics_that_sum_are_found() -> None:
    def metrics(y: Any, outputs: Tensors) -> dict[str, Any]:
        wrong = ops.sum(ops.abs(y - outputs["p"]))
        return {"wrong": wrong, "mean": (wrong,)}

    assert found(error, metrics) == ["wrong", "mean"]


MEANS: dict[str, Callable[[Any, Tensors], Any]] = {
    "samples": error,
    "mean": lambda y, outputs: ops.mean(error(y, outputs)),
    "sum over features": lambda y, outputs: ops.mean(ops.sum(ops.abs(outputs["x"]), axis=-1)),
    "weighted mean": lambda y, outputs: ops.sum(y * error(y, outputs)) / ops.sum(y),
    "nothing": lambda y, outputs: 0.0 * ops.sum(outputs["x"]),
    "mean inside the graph": lambda y, outputs: outputs["mean"],
    "other samples of the batch": lambda y, outputs: ops.mean(
        ops.logsumexp(ops.matmul(outputs["x"], ops.transpose(outputs["x"])), axis=-1)
    ),
}


@pytest.mark.parametrize("kind", MEANS)
def test_what_does_not_sum_is_left_alone(kind: str) -> None:
    assert found(MEANS[kind]) == []


def test_metrics_of_keras_may_sum() -> None:
    """They count all samples of an epoch, however these are batched."""

    def metrics(y: Any, outputs: Tensors) -> dict[str, Any]:
        both = (y, outputs["p"])
        return {"positives": both, "auc": both, "sum": (ops.sum(y),), "mean": (outputs["p"],)}

    assert found(error, metrics) == []


class SummingModel(ToyModel):
    def _loss(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        return {"loss": ops.sum(super()._loss(inputs, targets, outputs)["loss"])}


class SummingParams(ToyModelParams, builds=":SummingModel"):
    """Sums over the batch."""


class SummingScenario(ToyScenario):
    @classmethod
    def default_params(cls) -> ToyScenarioParams:
        return ToyScenarioParams(model=SummingParams())


def test_a_training_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="scena"):
        train_toy(tmp_path, scenario=SummingScenario, epochs=1)
    (record,) = caplog.records
    assert record.getMessage() == (
        "'loss' is a sum over the batch: it doubles with the number of samples, so it depends on the batch size. Return a value for each "
        "sample, or a mean."
    )
