"""The encoder reads both sentences at once; a dense layer on the mean of its features decides."""

from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Tensors

from .encoder import Encoder
from .params import PairModelParams


class PairGraph(GraphBase[PairModelParams]):
    """A pretrained encoder and a new head."""

    def __init__(self, params: PairModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.encoder = Encoder(params.encoder, name="encoder")
        self.dropout = layers.Dropout(params.dropout)
        self.head = layers.Dense(1, name="head")

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        features = self.encoder(inputs["tokens"], inputs["parts"], training=training)
        present = ops.expand_dims(ops.cast(ops.not_equal(inputs["tokens"], 0), "float32"), -1)
        mean = ops.sum(features * present, axis=1) / ops.sum(present, axis=1)
        logit = ops.squeeze(self.head(self.dropout(mean, training=training)), -1)
        return {"logit": logit, "same": ops.sigmoid(logit)}


class PairModel(ModelBase[PairModelParams]):
    """Learns from pairs with 1 (they say the same) or 0."""

    graph = PairGraph
    best = ("max", "acc")

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        wanted, logit = ops.cast(targets["same"], "float32"), outputs["logit"]
        return {"loss": keras.ops.binary_crossentropy(wanted, logit, from_logits=True)}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        right = ops.equal(ops.cast(outputs["logit"] > 0, "int32"), targets["same"])
        return {"acc": ops.cast(right, "float32")}
