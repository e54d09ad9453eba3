"""Logits and probabilities that are mixed up in a cross-entropy are found on one batch."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

from scena import ArraySpec, DataBase, DataBaseParams, GraphBase, ModelBase, ModelBaseParams
from scena.model.built import BuiltModel
from scena.model.measures.batch_checks import FUNCTIONS, mistakes, used_by_losses

Tensors = dict[str, Any]


class PointData(DataBase[DataBaseParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((3,), "float32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"y": ArraySpec((), "int32")}


class Classes(GraphBase[ModelBaseParams]):
    def __init__(self, params: ModelBaseParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.dense = layers.Dense(3, kernel_initializer="identity")

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        logits = self.dense(inputs["x"])
        return {"logits": logits, "p": ops.softmax(logits), "one": ops.sigmoid(logits[:, :1])}


def lines(loss: Callable[[Any, Tensors], Any]) -> list[str]:
    """What is found with this loss."""

    class Model(ModelBase[ModelBaseParams]):
        def create_graph(self) -> Classes:
            return Classes(self.params)

        def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
            return {"loss": loss(targets["y"], outputs)}

    model = Model(ModelBaseParams())
    training = BuiltModel(PointData(DataBaseParams()), model, model.create_root_graph()).training_model()
    x = np.array([[4, -2, 1], [0, 3, -1], [1, 0.5, 2]], "float32")
    return mistakes(training, {"x": x}, {"y": np.array([0, 1, 0], "int32")})


sparse, binary = keras.losses.sparse_categorical_crossentropy, keras.losses.binary_crossentropy
WRONG: dict[str, tuple[Callable[[Any, Tensors], Any], str]] = {
    "logits for probabilities": (
        lambda y, outputs: sparse(y, outputs["logits"]),
        (
            "sparse_categorical_crossentropy takes values from -2 to 4 for probabilities. If they are logits, pass from_logits=True; "
            "else give it the output of a softmax."
        ),
    ),
    "probabilities for logits": (
        lambda y, outputs: sparse(y, outputs["p"], from_logits=True),
        (
            "sparse_categorical_crossentropy with from_logits=True gets probabilities, the output of a softmax. Give it the logits, or "
            "remove from_logits."
        ),
    ),
    "a logit for a probability": (
        lambda y, outputs: binary(y[:, None], outputs["logits"][:, :1]),
        (
            "binary_crossentropy takes values from 0 to 4 for probabilities. If they are logits, pass from_logits=True; else give it the "
            "output of a sigmoid."
        ),
    ),
    "in an operation": (
        lambda y, outputs: ops.categorical_crossentropy(ops.one_hot(y, 3), outputs["p"], from_logits=True),
        (
            "categorical_crossentropy with from_logits=True gets probabilities, the output of a softmax. Give it the logits, or remove "
            "from_logits."
        ),
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_what_is_mixed_up_is_found(mistake: str) -> None:
    loss, line = WRONG[mistake]
    assert lines(loss) == [line]


RIGHT: list[Callable[[Any, Tensors], Any]] = [
    lambda y, outputs: sparse(y, outputs["logits"], from_logits=True),
    lambda y, outputs: sparse(y, outputs["p"]),
    lambda y, outputs: binary(y[:, None], outputs["one"]),
    lambda y, outputs: keras.losses.BinaryCrossentropy(from_logits=True)(y[:, None], outputs["logits"][:, :1]),
]


@pytest.mark.parametrize("number", range(len(RIGHT)))
def test_what_is_right_is_left_alone(number: int) -> None:
    before = [getattr(module, name) for module in (keras.ops, used_by_losses) for name in FUNCTIONS]
    assert lines(RIGHT[number]) == []
    assert before == [getattr(module, name) for module in (keras.ops, used_by_losses) for name in FUNCTIONS]
