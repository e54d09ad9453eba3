"""Found on the first batch: outputs that depend on other samples, metrics that are no means over samples, odd weights of samples."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

from scena import ArraySpec, DataBase, DataBaseParams, GraphBase, ModelBase, ModelBaseParams
from scena.model.built import BuiltModel
from scena.model.measures.batch_checks import mistakes

Tensors = dict[str, Any]
Function = Callable[..., Any]


class PointData(DataBase[DataBaseParams]):
    inputs = {"x": ArraySpec((3,), "float32")}
    targets = {"y": ArraySpec((), "float32")}


def plain(x: Any) -> Any:
    return x


def found(
    change: Function = plain,
    metric: Function = lambda y, p: ops.abs(y - p),
    weights: Function = lambda y: 1 + y,
    extra: Function = lambda x: {},
) -> list[str]:
    class Graph(GraphBase[ModelBaseParams]):
        def __init__(self, params: ModelBaseParams, **kwargs: Any) -> None:
            super().__init__(params, **kwargs)
            self.dense, self.norm = layers.Dense(4, name="dense"), layers.BatchNormalization()
            self.drop = layers.Dropout(0.5)

        def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
            x = self.drop(self.norm(self.dense(change(inputs["x"])), training=training), training=training)
            return {"p": ops.sigmoid(x[:, 0]), **extra(x)}

    class Model(ModelBase[ModelBaseParams]):
        graph = Graph

        def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
            return {"loss": ops.square(targets["y"] - outputs["p"])}

        def sample_weights(self, inputs: Tensors, targets: Tensors) -> Tensors:
            return {"loss": weights(targets["y"])}

        def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
            return {"metric": metric(targets["y"], outputs["p"])}

    keras.utils.set_random_seed(1)
    model = Model(ModelBaseParams())
    training = BuiltModel(PointData(DataBaseParams()), model, model.create_root_graph()).training_model()
    x = np.random.default_rng(0).standard_normal((5, 3)).astype("float32")
    return mistakes(training, {"x": x}, {"y": np.array([0.1, 0.9, 0.6, 0.2, 1.0], "float32")})


def f1(y: Any, p: Any) -> Any:
    called = ops.cast(p > 0.3, "float32")
    return 2 * ops.sum(called * y) / (ops.sum(called) + ops.sum(y) + 1e-6)


def r2(y: Any, p: Any) -> Any:
    return 1 - ops.sum(ops.square(y - p)) / (ops.sum(ops.square(y - ops.mean(y))) + 1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x - ops.mean(x, axis=0),
        lambda x: x * ops.softmax(x, axis=0),
        lambda x: ops.reshape(ops.transpose(x), (-1, 3)),
        lambda x: ops.cumsum(x[::-1], axis=0)[::-1],
    ],
    ids=["normalized over the batch", "softmax over the batch", "wrong reshape", "sum over the batch"],
)
def test_an_output_that_depends_on_other_samples(change: Function) -> None:
    (line,) = found(change)
    assert "The output 'p' of a sample depends on the other samples of its batch, so a prediction" in line


@pytest.mark.parametrize("metric", [f1, r2])
def test_a_metric_that_is_no_mean_over_samples(metric: Function) -> None:
    (line,) = found(metric=metric)
    assert "'metric' of a batch is not the mean over its samples (" in line and "in an evaluator" in line


@pytest.mark.parametrize(
    ("metric", "numbers"),
    [
        (lambda y, p: ops.abs(ops.expand_dims(y, -1) - p), "for its halves"),
        (lambda y, p: ops.cast(ops.max(y) > 0.5, "float32"), "0.5 on average for each of them alone"),
    ],
    ids=["pairs", "maximum of the batch"],
)
def test_a_metric_that_compares_samples_with_each_other(metric: Function, numbers: str) -> None:
    (line,) = found(metric=metric)
    assert "'metric' of a batch is not the mean over its samples (" in line and numbers in line


def test_weights_that_are_negative_or_all_zero() -> None:
    assert found(weights=lambda y: y - 0.5) == [
        "A sample weight of 'loss' is negative (-0.4): the training makes the loss of that sample larger."
    ]
    assert found(weights=lambda y: 0 * y) == [
        "All 5 sample weights of 'loss' in the first batch are 0, so nothing is learned from it."
    ]


def test_what_is_right_is_not_found() -> None:
    noise = keras.random.SeedGenerator(1)
    assert not found()
    assert not found(metric=lambda y, p: ops.mean(ops.abs(y - p)))
    assert not found(lambda x: x - ops.mean(x, axis=1, keepdims=True))
    assert not found(
        extra=lambda x: {"centre": ops.mean(x[:, :3], axis=0), "pairs": ops.matmul(x, ops.transpose(x))[:1]}
    )
    assert not found(extra=lambda x: {"random": x[:, 1] + keras.random.normal(ops.shape(x)[:1], seed=noise)})
