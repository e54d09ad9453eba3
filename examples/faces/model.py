"""Embeddings: a network that is trained to tell people apart, and then compares people it has never seen."""

from typing import Any

import keras
from keras import layers, ops

from scena import GenericGraphBase, ModelBase, Tensors, TrainingModel, full_precision
from scena.model.metric_learning import (
    EmbeddingAccuracy,
    SoftmaxCenterParams,
    create_center_loss,
    create_head,
    normalised,
)
from scena.model.zoo import create_network

from .params import FaceModelParams, IResNet, SmallCNN


class FaceGraph(GenericGraphBase[FaceModelParams]):
    """Training has a head that knows the training people; prediction ends at the embedding."""

    def __init__(self, params: FaceModelParams, size: int, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.network = create_embedder(params, size)
        self.head = create_head(params.head, params.people, name="head")
        self.center_loss = create_center_loss(params.head, params.people, name="center_loss")
        for layer in (self.head, self.center_loss):
            if layer is not None:  # prediction never calls them, but an export holds their weights
                layer.build((None, params.embedding))

    def build_train_graph(self, inputs: Tensors, targets: Tensors, training: bool | None = None) -> Tensors:
        embedding = self._embed(inputs, training)
        label = targets["label"]
        outputs = {"embedding": embedding, "logits": self.head(embedding, label, training=training)}
        if self.center_loss is not None:
            outputs["center"] = self.center_loss(embedding, label, training=training)
        return outputs

    def build_prediction_graph(self, inputs: Tensors) -> Tensors:
        return {"embedding": normalised(self._embed(inputs, False))}

    def _embed(self, inputs: Tensors, training: bool | None) -> Any:
        return self.network(ops.cast(inputs["image"], "float32") / 127.5 - 1, training=training)


def create_embedder(params: FaceModelParams, size: int) -> keras.Model:
    """The chosen network, from an image to its embedding."""
    network = params.network
    if isinstance(network, IResNet):
        name = f"IResNet{network.layers}"
        shape = (size, size, 3)
        return create_network(name, shape, 0, network.factor, dropout=params.dropout, embedding=params.embedding)
    assert isinstance(network, SmallCNN)
    image = x = keras.Input((size, size, 3), name="image")
    for filters in network.filters:
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.MaxPool2D()(layers.PReLU(shared_axes=[1, 2])(layers.BatchNormalization(momentum=0.9)(x)))
    x = layers.Dropout(params.dropout)(layers.Flatten()(x))
    x = layers.BatchNormalization(momentum=0.9, scale=False)(layers.Dense(params.embedding, use_bias=False)(x))
    return keras.Model(image, x, name="small_cnn")


class HeldOutModel(TrainingModel):
    """Trains as usual. Validation is on other people, whom the head does not know, so it looks at embeddings only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.nearest = EmbeddingAccuracy(name="emb_acc")

    def test_step(self, data: Any) -> Tensors:
        (x,) = data
        outputs = full_precision(self.root(x["inputs"]))
        self.nearest.update_state(x["targets"]["label"], outputs["embedding"])
        return {"emb_acc": self.nearest.result()}


class FaceModel(ModelBase[FaceModelParams]):
    """The best model is the one that errs least about people it was not trained on."""

    graph = FaceGraph
    best = ("min", "lav_eer")

    def training_model_cls(self) -> type[HeldOutModel]:
        return HeldOutModel

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        label, logits = targets["label"], outputs["logits"]
        losses = {
            "cross_entropy": keras.losses.sparse_categorical_crossentropy(label, logits, from_logits=True),
        }
        return {**losses, "center": outputs["center"]} if "center" in outputs else losses

    def loss_weights(self) -> dict[str, float]:
        head = self.params.head
        return {"center": head.weight} if isinstance(head, SoftmaxCenterParams) else {}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["label"], outputs["logits"])}
