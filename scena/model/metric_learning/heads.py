"""Heads from embeddings to logits, created from parameters, and center loss."""

from typing import Any

import keras
from keras import layers, ops

from scena.model.metric_learning.margins import ArcFace, CombinedMargin, CosFace, MarginHead, SphereFace
from scena.model.metric_learning.params import (
    ArcFaceParams,
    CombinedMarginParams,
    CosFaceParams,
    HeadParams,
    SoftmaxCenterParams,
    SphereFaceParams,
)
from scena.model.metric_learning.replicas import whole_over_part


@keras.saving.register_keras_serializable(package="scena")
class CenterLoss(keras.layers.Layer):
    """The mean squared distance of each embedding to the center of its class. Wen et al. 2016.

    Centers are not trained by gradients. After the loss of a training step, each moves towards the embeddings x of its class in the
    batch: c ← c − (1 − α) Σ (c − x). Nothing moves in evaluation. Several workers move the same centers by the samples of all of them.

    Args:
        n_classes: number of classes.
        alpha: how much a center stays where it is, from 0 to 1.
    """

    def __init__(self, n_classes: int, alpha: float = 0.9, **kwargs: Any) -> None:
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.n_classes = n_classes
        self.alpha = alpha

    def build(self, embedding_shape: Any, labels_shape: Any = None) -> None:
        self.centers = self.add_weight(
            name="centers",
            shape=(self.n_classes, embedding_shape[-1]),
            initializer="zeros",
            trainable=False,
            aggregation="mean",
        )

    def call(self, embedding: Any, labels: Any, training: bool | None = None) -> Any:
        """The loss of each sample.

        Args:
            embedding: one vector for each sample.
            labels: their classes.
            training: the centers move in training only.
        """
        embedding = ops.cast(embedding, self.compute_dtype)
        labels = ops.cast(ops.reshape(labels, (-1,)), "int32")
        centers = ops.convert_to_tensor(self.centers)
        away = ops.take(centers, labels, axis=0) - embedding
        if training:
            moved = ops.segment_sum(ops.stop_gradient(away), labels, num_segments=self.n_classes)
            self.centers.assign(centers - (1 - self.alpha) * whole_over_part() * moved)
        return ops.mean(ops.square(away), axis=-1)

    def compute_output_shape(self, embedding_shape: Any, labels_shape: Any = None) -> Any:
        return (embedding_shape[0],)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "n_classes": self.n_classes, "alpha": self.alpha}


@keras.saving.register_keras_serializable(package="scena")
class Softmax(layers.Dense):
    """A dense layer in single precision, called like the heads with a margin.

    Args:
        n_classes: number of classes.
    """

    def __init__(self, n_classes: int, **kwargs: Any) -> None:
        kwargs.setdefault("dtype", "float32")
        kwargs.pop("units", None)
        super().__init__(n_classes, **kwargs)

    def call(self, embedding: Any, labels: Any = None, training: bool | None = None) -> Any:
        """The logits of all classes; labels make no difference."""
        del labels
        return super().call(embedding, training=training)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "n_classes": self.units}


def create_head(params: HeadParams, n_classes: int, **kwargs: Any) -> MarginHead | Softmax:
    """The layer from embeddings to logits: `head(embedding, labels, training=…)`.

    Args:
        params: which head.
        n_classes: number of training classes.
        kwargs: further arguments of the layer, such as its name.
    """
    if isinstance(params, ArcFaceParams):
        return ArcFace(n_classes, params.s, params.m, **kwargs)
    if isinstance(params, CosFaceParams):
        return CosFace(n_classes, params.s, params.m, **kwargs)
    if isinstance(params, SphereFaceParams):
        return SphereFace(n_classes, params.s, params.m, **kwargs)
    if isinstance(params, CombinedMarginParams):
        return CombinedMargin(n_classes, params.s, params.m1, params.m2, params.m3, **kwargs)
    return Softmax(n_classes, **kwargs)


def create_center_loss(params: HeadParams, n_classes: int, **kwargs: Any) -> CenterLoss | None:
    """The center loss that goes with the head, if it has one; its weight is `params.weight`.

    Args:
        params: which head.
        n_classes: number of training classes.
        kwargs: further arguments of the layer, such as its name.
    """
    return CenterLoss(n_classes, params.alpha, **kwargs) if isinstance(params, SoftmaxCenterParams) else None
