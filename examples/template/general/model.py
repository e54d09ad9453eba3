"""The network, its loss and its metric, in plain Keras."""

from collections.abc import Callable
from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Sample

from .params import TemplateModelParams

Tensors = dict[str, Any]


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

    def create_graph(self) -> TemplateGraph:
        return TemplateGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        loss = keras.losses.sparse_categorical_crossentropy
        return {"loss": loss(targets["label"], outputs["logits"], from_logits=True)}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["label"], outputs["pred"])}

    def _best_logging_settings(self) -> tuple[str, str]:
        return "max", "acc"

    def _print_evaluate(self, sample: Sample, data: object, print_fn: Callable[[str], None] = print) -> None:
        print_fn(f"sample {sample.meta}: predicted {sample.outputs['class']}, target {sample.targets['label']}")

    def _print_prediction(self, sample: Sample, data: object, print_fn: Callable[[str], None] = print) -> None:
        print_fn(f"sample {sample.meta}: {sample.outputs['class']}")
