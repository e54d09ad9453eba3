"""The fixed frame of the network, and the backbones that can be chosen for it."""

from typing import Any

import numpy as np
from keras import layers, ops

from scena import GraphBase, TensorBoardWriter, Tensors, add_tensorboard

from .params import CNN, MLP, TutorialModelParams


class TutorialGraph(GraphBase[TutorialModelParams]):
    """Normalises the image, lets the chosen backbone extract features, and classifies them."""

    def __init__(self, params: TutorialModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.backend = params.graph.create(name="backend")  # exports find weights by these names
        self.logits = layers.Dense(params.n_classes, name="logits")

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        image = ops.expand_dims(ops.divide(inputs["img"], 255), -1)
        logits = self.logits(self.backend(image, training=training))
        return {"logits": logits, "pred": ops.softmax(logits), "class": ops.argmax(logits, axis=-1)}


class MultiLayerPerceptron(layers.Layer):
    """Dense layers."""

    def __init__(self, params: MLP, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.flatten = layers.Flatten()
        self.dense = [layers.Dense(nodes, activation=params.activation) for nodes in params.nodes]

    def call(self, image: Any, training: bool | None = None) -> Any:
        features = self.flatten(image)
        for dense in self.dense:
            features = dense(features)
        return features


class ConvolutionalNetwork(layers.Layer):
    """Convolutions and a dense layer. TensorBoard shows the outputs of the first convolution."""

    def __init__(self, params: CNN, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.convolutions = [layers.Conv2D(filters, 2, padding="same", activation="relu") for filters in params.filters]
        self.pool = layers.MaxPool2D()
        self.flatten = layers.Flatten()
        self.dense = layers.Dense(params.dense, activation="relu")
        self.writer = TensorBoardWriter("first_convolution", write_filters)

    def call(self, image: Any, training: bool | None = None) -> Any:
        features = image
        for number, convolution in enumerate(self.convolutions):
            features = convolution(features)
            if number == 0:
                add_tensorboard(self.writer, features)
            features = self.pool(features)
        return self.dense(self.flatten(features))


def write_filters(name: str, value: np.ndarray, step: int) -> None:
    """Writes the outputs of all filters on the first few images side by side."""
    import tensorflow as tf

    images = np.moveaxis(value[:3], -1, 1)  # image, filter, height, width
    rows = images.transpose(0, 2, 1, 3).reshape(len(images), value.shape[1], -1, 1)
    tf.summary.image(name, rows / max(float(rows.max()), 1e-9), step=step)
