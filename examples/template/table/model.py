"""The network, its loss and its metric, in plain Keras."""

from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Tensors

from .data import input_name
from .params import TemplateDataParams, TemplateModelParams


class TemplateGraph(GraphBase[TemplateModelParams]):
    """Create layers in `__init__`, connect them in `build_graph`."""

    def __init__(self, params: TemplateModelParams, columns: TemplateDataParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.numbers = [input_name(column) for column in columns.numbers]
        self.texts = [input_name(column) for column in columns.texts]
        self.scale = layers.Normalization()  # this and the vocabularies are learned from the training data: scenario.py
        self.words = [
            layers.StringLookup(max_tokens=params.words) for _ in columns.texts
        ]  # a word that is unknown is 0
        self.vectors = [layers.Embedding(params.words, 8) for _ in columns.texts]
        self.hidden = [layers.Dense(units, activation="relu") for units in params.units]
        self.dropout = layers.Dropout(params.dropout)
        self.logits = layers.Dense(len(columns.classes))

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        numbers = self.scale(ops.stack([inputs[name] for name in self.numbers], axis=-1))
        missing = ops.isnan(numbers)
        known = ops.where(missing, 0.0, numbers)  # a missing number becomes 0, the mean of its column
        lookups = zip(self.texts, self.words, self.vectors, strict=True)
        words = [vector(lookup(inputs[name])) for name, lookup, vector in lookups]
        features = ops.concatenate([known, ops.cast(missing, "float32"), *words], axis=-1)
        for layer in self.hidden:
            features = layer(features)
        logits = self.logits(self.dropout(features, training=training))
        return {"logits": logits, "pred": ops.softmax(logits), "class": ops.argmax(logits, axis=-1)}


class TemplateModel(ModelBase[TemplateModelParams]):
    """What is learned, and how success is measured."""

    graph = TemplateGraph
    best = ("min", "loss")

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        loss = keras.losses.sparse_categorical_crossentropy
        return {"loss": loss(targets["class"], outputs["logits"], from_logits=True)}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["class"], outputs["pred"])}
