"""One network with two tasks, rare positives and metrics with state."""

from collections.abc import Callable
from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Sample

from .data import PLANS
from .params import TabularModelParams

Tensors = dict[str, Any]


class TabularGraph(GraphBase[TabularModelParams]):
    def __init__(self, params: TabularModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.scale = layers.Normalization()  # adapted to the training data in scenario.py
        self.plan = layers.StringLookup(vocabulary=PLANS, output_mode="one_hot")  # any other plan is a class of its own
        self.hidden = [layers.Dense(units, activation="relu") for units in params.units]
        self.leaves = layers.Dense(1)
        self.spends = layers.Dense(1, activation="softplus")

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        known = ops.cast(inputs["known"], "float32")
        numbers = self.scale(inputs["numbers"]) * known  # a missing number becomes 0, the mean of its column
        features = ops.concatenate([numbers, known, ops.cast(self.plan(inputs["plan"]), "float32")], axis=-1)
        for layer in self.hidden:
            features = layer(features)
        logit = self.leaves(features)
        return {"logit": logit, "leaves": ops.sigmoid(logit)[:, 0], "spends": self.spends(features)[:, 0]}


class TabularModel(ModelBase[TabularModelParams]):
    def __init__(self, params: TabularModelParams) -> None:
        super().__init__(params)
        self.auc = keras.metrics.AUC(num_thresholds=1000)
        self.recall = keras.metrics.Recall()
        self.precision = keras.metrics.Precision()

    def create_graph(self) -> TabularGraph:
        return TabularGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        # one value for each sample, since samples are weighted: Keras averages over the last axis
        left = ops.expand_dims(targets["left"], -1)
        return {
            "entropy": keras.losses.binary_crossentropy(left, outputs["logit"], from_logits=True),
            "euros": ops.abs(targets["spent"] - outputs["spends"]),
        }

    def _loss_weights(self) -> dict[str, float]:
        return {"euros": self.params.spent_weight}

    def _sample_weights(self, inputs: Tensors, targets: Tensors) -> Tensors:
        return {"entropy": 1 + (self.params.leaving_weight - 1) * targets["left"]}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
        left, leaves = targets["left"], outputs["leaves"]
        return {
            "acc": ops.equal(left, ops.round(leaves)),
            "auc": (self.auc, left, leaves),
            "recall": (self.recall, left, leaves),
            "precision": (self.precision, left, leaves),
        }

    def _best_logging_settings(self) -> tuple[str, str]:
        return "max", "auc"

    def _print_prediction(self, sample: Sample, data: object, print_fn: Callable[[str], None] = print) -> None:
        outputs = sample.outputs
        print_fn(f"{sample.meta['customer']}: leaves with p = {outputs['leaves']:.2f}, spends {outputs['spends']:.2f}")
