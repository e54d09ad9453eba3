"""One network with two tasks, rare positives and metrics with state."""

from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Tensors

from .data import NUMBERS, PLANS
from .params import TabularModelParams


class TabularGraph(GraphBase[TabularModelParams]):
    def __init__(self, params: TabularModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.scale = layers.Normalization()  # adapted to the training data in scenario.py
        self.plan = layers.StringLookup(vocabulary=PLANS, output_mode="one_hot")  # any other plan is a class of its own
        self.hidden = [layers.Dense(units, activation="relu") for units in params.units]
        self.leaves = layers.Dense(1)
        self.spends = layers.Dense(1, activation="softplus")

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        numbers = ops.stack([inputs[column] for column in NUMBERS], axis=-1)
        missing = ops.isnan(numbers)
        known = ops.where(missing, 0.0, self.scale(numbers))  # a missing number becomes 0, the mean of its column
        plan = ops.cast(self.plan(inputs["plan"]), "float32")
        features = ops.concatenate([known, ops.cast(missing, "float32"), plan], axis=-1)
        for layer in self.hidden:
            features = layer(features)
        logit = self.leaves(features)
        return {"logit": logit, "leaves": ops.sigmoid(logit)[:, 0], "spends": self.spends(features)[:, 0]}


class TabularModel(ModelBase[TabularModelParams]):
    graph = TabularGraph
    best = ("max", "auc")

    def __init__(self, params: TabularModelParams) -> None:
        super().__init__(params)
        self.auc = keras.metrics.AUC(num_thresholds=1000)
        self.recall = keras.metrics.Recall()
        self.precision = keras.metrics.Precision()

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        # one value for each sample, since samples are weighted: Keras averages over the last axis
        left = ops.expand_dims(targets["left"], -1)
        return {
            "entropy": keras.losses.binary_crossentropy(left, outputs["logit"], from_logits=True),
            "euros": ops.abs(targets["spent"] - outputs["spends"]),
        }

    def loss_weights(self) -> dict[str, float]:
        return {"euros": self.params.spent_weight}

    def sample_weights(self, inputs: Tensors, targets: Tensors) -> Tensors:
        return {"entropy": 1 + (self.params.leaving_weight - 1) * targets["left"]}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
        left, leaves = targets["left"], outputs["leaves"]
        return {
            "acc": ops.equal(left, ops.round(leaves)),
            "auc": (self.auc, left, leaves),
            "recall": (self.recall, left, leaves),
            "precision": (self.precision, left, leaves),
        }
