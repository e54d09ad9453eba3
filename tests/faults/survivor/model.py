"""Model of the scenario that is killed."""

from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase

from .params import SurvivorModelParams

Tensors = dict[str, Any]


class UnseededNoise(layers.Layer):
    """Noise from the generator that belongs to no layer; on JAX, which refuses that, from one of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.own = keras.random.SeedGenerator(1) if keras.backend.backend() == "jax" else None

    def call(self, x: Any, training: bool | None = None) -> Any:
        return x + 0.05 * keras.random.normal(ops.shape(x), dtype=x.dtype, seed=self.own) if training else x


class SurvivorGraph(GraphBase[SurvivorModelParams]):
    def __init__(self, params: SurvivorModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.hidden = layers.Dense(params.units, activation="tanh")
        self.normalise = layers.BatchNormalization()
        self.dropout = layers.Dropout(0.3)
        self.noise = UnseededNoise()
        self.logits = layers.Dense(2, dtype="float32")

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        x = self.normalise(self.hidden(inputs["x"]), training=training)
        x = self.noise(self.dropout(x, training=training), training=training)
        logits = self.logits(x)
        return {"logits": logits, "pred": ops.softmax(logits)}


class SurvivorModel(ModelBase[SurvivorModelParams]):
    def __init__(self, params: SurvivorModelParams) -> None:
        super().__init__(params)
        self.auc = keras.metrics.AUC(num_thresholds=20)

    def create_graph(self) -> SurvivorGraph:
        return SurvivorGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": keras.losses.sparse_categorical_crossentropy(targets["y"], outputs["logits"], from_logits=True)}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {
            "acc": keras.metrics.sparse_categorical_accuracy(targets["y"], outputs["pred"]),
            "auc": (self.auc, targets["y"], outputs["pred"][:, 1]),
        }

    def _best_logging_settings(self) -> tuple[str, str]:
        return "min", "loss"
