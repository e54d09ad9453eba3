"""A tag for each letter. What is padded has no part in losses and metrics."""

from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Tensors

from .data import PADDING, TAGS
from .params import TaggingModelParams


class TaggingGraph(GraphBase[TaggingModelParams]):
    def __init__(self, params: TaggingModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.embedding = layers.Embedding(128, params.embedding)
        self.reader = layers.Bidirectional(layers.GRU(params.units, return_sequences=True))
        self.logits = layers.Dense(len(TAGS))

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        letters = inputs["letters"]
        # without the mask, reading backwards would begin in the padding
        features = self.reader(self.embedding(letters), mask=ops.not_equal(letters, 0), training=training)
        logits = self.logits(features)
        return {"logits": logits, "tags": ops.argmax(logits, axis=-1)}


class TaggingModel(ModelBase[TaggingModelParams]):
    graph = TaggingGraph
    best = ("max", "lav_field_f1")

    def __init__(self, params: TaggingModelParams) -> None:
        super().__init__(params)
        self.letter_acc = keras.metrics.Accuracy()

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        there, tags = _there(targets)
        entropy = keras.losses.sparse_categorical_crossentropy(tags, outputs["logits"], from_logits=True)
        return {"loss": ops.sum(entropy * there, axis=1) / ops.sum(there, axis=1)}  # the mean of each line's letters

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
        there, tags = _there(targets)
        wrong = there * ops.cast(ops.not_equal(ops.cast(outputs["tags"], "int32"), tags), "float32")
        return {
            "letter_acc": (self.letter_acc, tags, outputs["tags"], there),  # of all letters
            "line_acc": ops.equal(ops.sum(wrong, axis=1), 0),  # of all lines
        }


def _there(targets: Tensors) -> tuple[Any, Any]:
    """1 for each letter and 0 for padding, and tags that a loss takes."""
    there = ops.not_equal(targets["tags"], PADDING)
    return ops.cast(there, "float32"), ops.where(there, targets["tags"], 0)
