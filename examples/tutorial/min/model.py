"""The network, its loss and its metric, in plain Keras."""

from collections.abc import Callable
from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase, Sample

from .params import TutorialModelParams

Tensors = dict[str, Any]


class TutorialGraph(GraphBase[TutorialModelParams]):
    def __init__(self, params: TutorialModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.features = keras.Sequential(
            [
                layers.Conv2D(16, 3, padding="same", activation="relu"),
                layers.MaxPool2D(),
                layers.Conv2D(32, 3, padding="same", activation="relu"),
                layers.MaxPool2D(),
                layers.Flatten(),
                layers.Dense(128, activation="relu"),
                layers.Dropout(0.3),
            ]
        )
        self.logits = layers.Dense(params.n_classes)

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        image = ops.expand_dims(ops.cast(inputs["img"], "float32") / 255, -1)
        logits = self.logits(self.features(image, training=training))
        return {"logits": logits, "pred": ops.softmax(logits), "class": ops.argmax(logits, axis=-1)}


class TutorialModel(ModelBase[TutorialModelParams]):
    def create_graph(self) -> TutorialGraph:
        return TutorialGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {
            "loss": keras.losses.sparse_categorical_crossentropy(targets["gt"], outputs["logits"], from_logits=True)
        }

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["gt"], outputs["pred"])}

    def _best_logging_settings(self) -> tuple[str, str]:
        return "max", "acc"

    def _print_evaluate(self, sample: Sample, data: object, print_fn: Callable[[str], None] = print) -> None:
        label = sample.outputs["class"]
        print_fn(f"predicted {label} (p = {sample.outputs['pred'][label]:.2f}), target {sample.targets['gt']}")

    def _print_prediction(self, sample: Sample, data: object, print_fn: Callable[[str], None] = print) -> None:
        label = sample.outputs["class"]
        print_fn(f"predicted {label} (p = {sample.outputs['pred'][label]:.2f})")
