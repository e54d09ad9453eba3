"""The network, its loss and its metric, and how an answer is shown."""

from collections.abc import Callable
from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Sample

from .data import FlowersData
from .params import FlowersModelParams

Tensors = dict[str, Any]


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
    """Tells pictures apart."""

    def create_graph(self, n_classes: int) -> FlowersGraph:  # type: ignore[override]
        return FlowersGraph(self.params, n_classes, name="graph")

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        loss = keras.losses.sparse_categorical_crossentropy
        return {"loss": loss(targets["label"], outputs["logits"], from_logits=True)}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["label"], outputs["pred"])}

    def _best_logging_settings(self) -> tuple[str, str]:
        return "max", "acc"

    def _print_evaluate(self, sample: Sample, data: FlowersData, print_fn: Callable[[str], None] = print) -> None:
        print_fn(f"{_answer(sample, data)}, and it is {data.name_of(int(sample.targets['label']))}")

    def _print_prediction(self, sample: Sample, data: FlowersData, print_fn: Callable[[str], None] = print) -> None:
        print_fn(_answer(sample, data))


def _answer(sample: Sample, data: FlowersData) -> str:
    label = int(sample.outputs["class"])
    return f"{sample.meta['name']}: most likely {data.name_of(label)} with {sample.outputs['pred'][label]:.1%}"
