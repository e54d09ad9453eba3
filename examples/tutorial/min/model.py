"""The network, its loss and its metric, in plain Keras."""

from typing import Any

from keras import Sequential, layers, losses, metrics, ops

from scena import GraphBase, ModelBase, Tensors

from .params import TutorialModelParams


class TutorialGraph(GraphBase[TutorialModelParams]):
    def __init__(self, params: TutorialModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        blocks = [[layers.Conv2D(n, 3, padding="same", activation="relu"), layers.MaxPool2D()] for n in (16, 32)]
        dense = [layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dropout(0.3)]
        self.features = Sequential([*blocks[0], *blocks[1], *dense])
        self.logits = layers.Dense(params.n_classes)

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        image = ops.expand_dims(ops.divide(inputs["img"], 255), -1)
        logits = self.logits(self.features(image, training=training))
        return {"logits": logits, "pred": ops.softmax(logits), "class": ops.argmax(logits, axis=-1)}


class TutorialModel(ModelBase[TutorialModelParams]):
    graph = TutorialGraph
    best = ("max", "acc")

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": losses.sparse_categorical_crossentropy(targets["gt"], outputs["logits"], from_logits=True)}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": metrics.sparse_categorical_accuracy(targets["gt"], outputs["pred"])}
