"""Losses and metrics that count padding are found on one batch."""

from typing import Any

import keras
import numpy as np
from keras import layers, ops

from scena import ArraySpec, DataBase, DataBaseParams, GraphBase, ModelBase, ModelBaseParams
from scena.model.built import BuiltModel
from scena.model.measures.batch_checks import padding_effects

Tensors = dict[str, Any]


class TagData(DataBase[DataBaseParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"letters": ArraySpec((None,), "int32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"tags": ArraySpec((None,), "int32")}

    def _padding_values(self) -> dict[str, Any]:
        return {"tags": -1}


class TagGraph(GraphBase[ModelBaseParams]):
    def __init__(self, params: ModelBaseParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.logits = layers.Embedding(10, 3)

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        return {"logits": self.logits(inputs["letters"])}


class TagModel(ModelBase[ModelBaseParams]):
    def __init__(self, params: ModelBaseParams) -> None:
        super().__init__(params)
        self.masked, self.plain = keras.metrics.SparseCategoricalAccuracy(), keras.metrics.SparseCategoricalAccuracy()

    def create_graph(self) -> TagGraph:
        return TagGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        there, tags = ops.cast(targets["tags"] >= 0, "float32"), ops.maximum(targets["tags"], 0)
        entropy = keras.losses.sparse_categorical_crossentropy(tags, outputs["logits"], from_logits=True)
        return {"right": ops.sum(entropy * there, axis=1) / ops.sum(there, axis=1), "wrong": entropy}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
        there, tags = ops.cast(targets["tags"] >= 0, "float32"), ops.maximum(targets["tags"], 0)
        noise = keras.random.normal(ops.shape(inputs["letters"]))
        return {
            "masked": (self.masked, tags, outputs["logits"], there),
            "plain": (self.plain, tags, outputs["logits"]),
            "length": ops.sum(there, axis=1),
            "noise": noise,
        }


def test_what_counts_padding_is_found() -> None:
    keras.utils.set_random_seed(1)
    data, model = TagData(DataBaseParams()), TagModel(ModelBaseParams())
    training = BuiltModel(data, model, model.create_root_graph()).training_model()
    letters = np.array([[1, 2, 3, 4], [5, 6, 0, 0], [7, 0, 0, 0]], "int32")
    tags = np.array([[1, 2, 1, 2], [1, 2, -1, -1], [1, -1, -1, -1]], "int32")
    effects = padding_effects(training, data, {"letters": letters}, {"tags": tags})
    assert set(effects) == {"loss", "wrong", "plain"}
    value, padded = effects["wrong"]
    assert value != padded


class PointData(TagData):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"letters": ArraySpec((4,), "int32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"tags": ArraySpec((4,), "int32")}


def test_nothing_is_run_where_nothing_is_padded() -> None:
    assert padding_effects(None, PointData(DataBaseParams()), {}, {}) == {}
