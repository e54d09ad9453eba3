"""Losses, metrics and weights that would count something else than meant are refused, with a line that says what to do."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

from scena import ArraySpec, DataBase, DataBaseParams, GraphBase, ModelBase, ModelBaseParams
from scena.backends.tensorflow.engine import TensorFlowEngine
from scena.errors import ModelError
from scena.model.built import BuiltModel
from scena.model.training_model import _counted

Tensors = dict[str, Any]


class PointData(DataBase[DataBaseParams]):
    def input_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((3,), "float32")}

    def target_specs(self) -> dict[str, ArraySpec]:
        return {"y": ArraySpec((), "float32")}


class Line(GraphBase[ModelBaseParams]):
    def __init__(self, params: ModelBaseParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.dense = layers.Dense(1, kernel_initializer="ones")

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        out = self.dense(inputs["x"])[:, 0]
        return {"out": out, "p": ops.sigmoid(out)}


class Weighted(ModelBase[ModelBaseParams]):
    """A model whose `metrics` and `sample_weights` the tests replace."""

    def __init__(self, params: ModelBaseParams) -> None:
        super().__init__(params)
        self.auc = keras.metrics.AUC(name="auc")
        self.mae = keras.metrics.MeanAbsoluteError(name="mae")

    def create_graph(self) -> Line:
        return Line(self.params)

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {
            "squared": ops.square(targets["y"] - outputs["out"]),
            "entropy": keras.losses.binary_crossentropy(targets["y"], outputs["p"]),  # (batch,): one number
        }


Hook = Callable[..., Any]


def model_with(**hooks: Hook) -> keras.Model:
    """The training model of `Weighted` with these methods."""
    model = type("Weighted", (Weighted,), hooks)(ModelBaseParams())
    return BuiltModel(PointData(DataBaseParams()), model, model.create_root_graph()).training_model()


def weights(**given: Callable[[Any], Any]) -> Hook:
    return lambda self, inputs, targets: {name: function(targets["y"]) for name, function in given.items()}


def metrics(function: Callable[[Any, Any, Any], Any]) -> Hook:
    return lambda self, inputs, targets, outputs: function(self, targets["y"], outputs["p"])


REFUSED: dict[str, tuple[dict[str, Hook], str]] = {
    "weights of nothing": (
        {"sample_weights": weights(sqaured=lambda y: y)},
        "Weighted.sample_weights names ['sqaured'], but there are only ['entropy', 'squared'].",
    ),
    "weights of one number": (
        {"sample_weights": weights(entropy=lambda y: y)},
        (
            "Weighted.sample_weights: 'entropy' is a single number for the whole batch, so samples cannot be weighted any more. "
            "Return one value for each sample, for example keras.losses.binary_crossentropy on tensors of shape (batch, 1), or a "
            "Loss with reduction='none'."
        ),
    ),
    "weights within a sample": (
        {"sample_weights": lambda self, inputs, targets: {"squared": inputs["x"]}},
        (
            "Weighted.sample_weights: 'squared' must have one weight for each sample. Received: shape (None, 3). Weights within a "
            "sample belong in Weighted.metrics or Weighted.loss."
        ),
    ),
    "weights of a Keras metric": (
        {"metrics": metrics(lambda self, y, p: {"auc": (self.auc, y, p)}), "sample_weights": weights(auc=lambda y: y)},
        "Weighted.sample_weights: 'auc' is a Keras metric; it takes its weights as a fourth entry: (metric, y_true, y_pred, weights).",
    ),
    "one metric, two names": (
        {"metrics": metrics(lambda self, y, p: {"a": (self.auc, y, p), "b": (self.auc, y, 1 - p)})},
        "Weighted.metrics uses one metric object for 'a' and 'b', which would count both as one; create one for each in __init__.",
    ),
    "a name of the history": (
        {"metrics": metrics(lambda self, y, p: {"val_error": y - p})},
        (
            "Weighted: 'val_error' cannot be the name of a loss or metric: 'val_' and 'lav_' mark the results of validation and LAV. "
            "Rename it."
        ),
    ),
    "a metric that is not used": (
        {"metrics": metrics(lambda self, y, p: {"auc": self.auc})},
        "Weighted.metrics: 'auc' is the object AUC; return (metric, y_true, y_pred).",
    ),
    "no tensor": (
        {"metrics": metrics(lambda self, y, p: {"auc": None})},
        "Weighted.metrics: 'auc' must be a tensor. Received: NoneType.",
    ),
    "a loss that is not called": (
        {"loss": lambda self, inputs, targets, outputs: {"loss": keras.losses.MeanSquaredError()}},
        "Weighted.loss: 'loss' is the object MeanSquaredError; call it: loss(y_true, y_pred).",
    ),
    "a pair without a metric": (
        {"metrics": metrics(lambda self, y, p: {"auc": (y, p)})},
        "Weighted.metrics: 'auc' must be a tensor or (metric, y_true, y_pred). Received: a tuple of SymbolicTensor, SymbolicTensor.",
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_mistakes_are_refused(mistake: str) -> None:
    hooks, text = REFUSED[mistake]
    with pytest.raises(ModelError) as failure:
        model_with(**hooks)
    assert str(failure.value) == text


def values(model: keras.Model) -> dict[str, float]:
    """Results over two batches of different size."""
    model.compile(optimizer=keras.optimizers.SGD(0.0))
    data = PointData(DataBaseParams())
    engine = TensorFlowEngine(model, data.input_layer_specs(), data.target_layer_specs())
    x, y = X.astype("float32"), Y.astype("float32")
    engine.test({"x": x[None, :6]}, {"y": y[None, :6]})
    return engine.test({"x": x[None, 6:]}, {"y": y[None, 6:]})


X = np.random.default_rng(0).normal(size=(9, 3))
Y = (np.random.default_rng(1).uniform(size=9) > 0.5).astype(float)
P = 1 / (1 + np.exp(-X.sum(axis=1)))


@pytest.mark.parametrize("form", ["in a dict", "in a list", "as a tuple"])
def test_a_called_metric_is_the_metric_of_all_samples(form: str) -> None:
    returned: dict[str, Callable[[Any, Any, Any], Any]] = {
        "in a dict": lambda self, y, p: {"auc": self.auc(y, p), "mae": self.mae(y, p, sample_weight=y)},
        "in a list": lambda self, y, p: [self.auc(y, p), self.mae(y, p, sample_weight=y)],
        "as a tuple": lambda self, y, p: {"auc": (self.auc, y, p), "mae": (self.mae, y, p, y)},
    }
    results = values(model_with(metrics=metrics(returned[form])))
    expected = keras.metrics.AUC()
    expected.update_state(Y, P)
    assert results["auc"] == pytest.approx(float(expected.result()), abs=1e-6)
    assert results["mae"] == pytest.approx(np.sum(abs(Y - P) * Y) / np.sum(Y), abs=1e-6)


def test_a_keras_metric_counts_samples_and_not_batches() -> None:
    results = values(model_with(metrics=metrics(lambda self, y, p: {"mae": (self.mae, y, p)})))
    assert results["mae"] == pytest.approx(np.mean(abs(Y - P)), abs=1e-6)


@pytest.mark.parametrize("classes", [True, False])
def test_letters_of_short_and_long_batches_count_the_same(classes: bool) -> None:
    """Keras averages within each sample first, so that a letter of a short batch would count more."""
    metric = keras.metrics.SparseCategoricalAccuracy() if classes else keras.metrics.Accuracy()
    rng = np.random.default_rng(0)
    right = count = 0.0
    for length in (3, 10):
        tags, found = rng.integers(0, 3, (2, 4, length))
        there = (np.arange(length) < rng.integers(1, length + 1, (4, 1))).astype("float32")
        right, count = right + ((tags == found) * there).sum(), count + there.sum()
        arguments = [tags, np.eye(3)[found] if classes else found, there]
        metric.update_state(*_counted(metric, arguments))
    assert float(metric.result()) == pytest.approx(right / count, abs=1e-6)


def test_weights_that_are_spread_over_a_sample_stay_as_they_are() -> None:
    values, weights = np.ones((4, 3)), np.ones((4, 1))
    assert [value.shape for value in _counted(keras.metrics.Mean(), [values, weights])] == [(4, 3), (4, 1)]
    assert [value.shape for value in _counted(keras.metrics.AUC(), [values, values])] == [(4, 3), (4, 3)]


def test_a_loss_that_depends_on_no_weight_is_refused() -> None:
    model = model_with(
        loss=lambda self, inputs, targets, outputs: {"loss": ops.abs(targets["y"] - ops.round(outputs["p"]))}
    )
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    data = PointData(DataBaseParams())
    engine = TensorFlowEngine(model, data.input_layer_specs(), data.target_layer_specs())
    with pytest.raises(ModelError) as failure:
        engine.train({"x": X.astype("float32")[None]}, {"y": Y.astype("float32")[None]})
    assert str(failure.value) == (
        "The loss does not depend on any trainable weight, so nothing can be learned: it uses no output of the graph, "
        "or a function without a gradient (argmax, round, a cast to whole numbers), or all layers are frozen."
    )


def test_samples_are_weighted() -> None:
    results = values(model_with(sample_weights=weights(squared=lambda y: 1 + 9 * y)))
    assert results["squared"] == pytest.approx(np.mean((1 + 9 * Y) * (Y - X.sum(axis=1)) ** 2), rel=1e-5)


class Adding(Line):
    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        outputs = super().build_graph(inputs, training)
        self.add_loss(ops.square(outputs["out"]))
        return outputs


def test_a_layer_adds_a_single_number_to_the_loss() -> None:
    model = model_with(create_graph=lambda self: Adding(self.params))
    with pytest.raises(ModelError) as failure:
        values(model)
    assert str(failure.value) == (
        "A layer calls add_loss with a tensor of shape (None,), whose sum would depend on the batch size. "
        "Add a single number, for example ops.mean(…)."
    )
