"""The network, its loss and its metric, and how an answer is shown."""

from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Tensors

from .params import FlowersModelParams


class FlowersGraph(GraphBase[FlowersModelParams]):
    """Convolutions and pooling, dropout, dense layers. The number of classes comes from the data."""

    def __init__(self, params: FlowersModelParams, n_classes: int, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.features = [layers.Rescaling(1 / 127.5, offset=-1)]
        for filters in params.filters:
            self.features += [layers.Conv2D(filters, 3, padding="same", activation="relu"), layers.MaxPooling2D()]
        self.features += [layers.Dropout(params.dropout), layers.Flatten()]
        self.features += [layers.Dense(units, activation="relu") for units in params.dense]
        self.logits = layers.Dense(n_classes)

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        features = inputs["image"]
        for layer in self.features:
            features = layer(features, training=training) if isinstance(layer, layers.Dropout) else layer(features)
        logits = self.logits(features)
        return {"logits": logits, "pred": ops.softmax(logits), "class": ops.argmax(logits, axis=-1)}


class FlowersModel(ModelBase[FlowersModelParams]):
    """Tells images apart."""

    graph = FlowersGraph
    best = ("max", "acc")

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        loss = keras.losses.sparse_categorical_crossentropy
        return {"loss": loss(targets["label"], outputs["logits"], from_logits=True)}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["label"], outputs["pred"])}
