"""Heads by parameters: from embeddings to logits in training, and the losses that come with them."""

from typing import Any

import keras
from keras import layers

from scena.model.metric_learning.center_loss import CenterLoss
from scena.model.metric_learning.margins import ArcFace, CombinedMargin, CosFace, MarginHead, SphereFace
from scena.model.metric_learning.params import (
    ArcFaceParams,
    CombinedMarginParams,
    CosFaceParams,
    HeadParams,
    SoftmaxCenterParams,
    SphereFaceParams,
)


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
        """The arguments of the layer."""
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
