"""Model of the toy scenario."""

from collections.abc import Callable
from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Sample

from .params import ToyModelParams

Tensors = dict[str, Any]


class ToyGraph(GraphBase[ToyModelParams]):
    def __init__(self, params: ToyModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        regularizer = keras.regularizers.L2(params.l2) if params.l2 else None
        self.hidden = layers.Dense(params.units, activation="tanh", kernel_regularizer=regularizer, name="hidden")
        self.dropout = layers.Dropout(params.dropout)
        self.logits = layers.Dense(2, name="logits")

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        logits = self.logits(self.dropout(self.hidden(inputs["x"]), training=training))
        if self.params.wrong == "graph":
            return [logits]  # type: ignore[return-value]
        return {"logits": logits, "pred": ops.softmax(logits)}


class ToyModel(ModelBase[ToyModelParams]):
    def __init__(self, params: ToyModelParams, names: list[str] | None = None) -> None:
        super().__init__(params)
        self.names = names or []
        self.accuracy = keras.metrics.SparseCategoricalAccuracy()

    def create_graph(self) -> ToyGraph:
        return ToyGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        loss = keras.losses.sparse_categorical_crossentropy(targets["y"], outputs["logits"], from_logits=True)
        return {
            "": lambda: {"loss": loss},
            "none": dict,
            "tensor": lambda: loss,
            "key": lambda: {"loss": outputs["missing"]},
            "twice": lambda: {"loss": loss, "other": loss},
            "clash": lambda: {"acc": loss},
        }.get(self.params.wrong, lambda: {"loss": loss})()

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        metric = keras.metrics.SparseCategoricalAccuracy() if self.params.wrong == "metric" else self.accuracy
        return {"acc": (metric, targets["y"], outputs["pred"])}

    def _best_logging_settings(self) -> tuple[str, str]:
        return (
            ("highest", "acc")
            if self.params.wrong == "mode"
            else ("max", "accc" if self.params.wrong == "best" else "acc")
        )

    def _print_prediction(self, sample: Sample, data: object, print_fn: Callable[[str], None] = print) -> None:
        print_fn(f"{sample.meta['index']}: {self.names[int(sample.outputs['pred'].argmax())]}")
