"""The network, its loss and its metric, in plain Keras."""

from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Tensors

from .params import TemplateModelParams


class TemplateGraph(GraphBase[TemplateModelParams]):
    """Create layers in `__init__`, connect them in `build_graph`."""

    def __init__(self, params: TemplateModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.hidden = [layers.Dense(units, activation="relu") for units in params.units]
        self.dropout = layers.Dropout(params.dropout)
        self.logits = layers.Dense(2)

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        features = inputs["point"]
        for layer in self.hidden:
            features = layer(features)
        logits = self.logits(self.dropout(features, training=training))
        return {"logits": logits, "pred": ops.softmax(logits), "class": ops.argmax(logits, axis=-1)}


class TemplateModel(ModelBase[TemplateModelParams]):
    """What is learned, and how success is measured."""

    graph = TemplateGraph
    best = ("max", "acc")

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        loss = keras.losses.sparse_categorical_crossentropy
        return {"loss": loss(targets["label"], outputs["logits"], from_logits=True)}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["label"], outputs["pred"])}
