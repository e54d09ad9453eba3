"""Heads from embeddings to logits: a dense layer, and margins that make it harder for the right class; and center loss.

Margins tell classes apart by angles (ArcFace, CosFace, SphereFace and their mixture). All compute in single precision whatever the layers
before them do: half precision cannot tell small angles apart.
"""

import math
from typing import Any

import keras
from keras import layers, ops

from scena.model.metric_learning.measures import normalised
from scena.model.metric_learning.params import (
    ArcFaceParams,
    CombinedMarginParams,
    CosFaceParams,
    HeadParams,
    SoftmaxCenterParams,
    SphereFaceParams,
)
from scena.model.metric_learning.replicas import whole_over_part

SAFE = 1e-6
"""How far a cosine stays away from ±1, where the slope of its angle is infinite."""


class MarginHead(keras.layers.Layer):
    """Base of the heads with a margin: logits are s · cos θ, where θ is the angle between an embedding and the vector of a class.

    Where labels are given in training, the logit of the right class is made smaller by `with_margin`.

    Args:
        n_classes: number of classes.
        s: factor of the cosine; None takes the length of each embedding.
    """

    def __init__(self, n_classes: int, s: float | None = 30.0, **kwargs: Any) -> None:
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.n_classes = n_classes
        self.s = s

    def build(self, embedding_shape: Any, labels_shape: Any = None) -> None:
        self.kernel = self.add_weight(
            name="kernel", shape=(embedding_shape[-1], self.n_classes), initializer="glorot_uniform"
        )

    def call(self, embedding: Any, labels: Any = None, training: bool | None = None) -> Any:
        """The logits of all classes.

        Args:
            embedding: one vector for each sample, of any length.
            labels: the right classes; without them there is no margin.
            training: there is a margin in training only.
        """
        embedding = ops.cast(embedding, self.compute_dtype)
        cosine = ops.matmul(normalised(embedding), normalised(self.kernel, axis=0))
        if training and labels is not None:
            right = ops.one_hot(ops.reshape(labels, (-1,)), self.n_classes, dtype="bool")
            cosine = ops.where(right, self.with_margin(cosine), cosine)
        if self.s is None:
            return cosine * ops.norm(embedding, axis=-1, keepdims=True)
        return cosine * self.s

    def with_margin(self, cosine: Any) -> Any:
        """Replaces cos θ for the true class."""
        raise NotImplementedError(f"{type(self).__name__} must implement with_margin(self, cosine).")

    def compute_output_shape(self, embedding_shape: Any, labels_shape: Any = None) -> Any:
        return (embedding_shape[0], self.n_classes)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "n_classes": self.n_classes, "s": self.s}


@keras.saving.register_keras_serializable(package="scena")
class ArcFace(MarginHead):
    """Adds a margin to the angle: cos(θ + m). Deng et al. 2019.

    Where θ + m exceeds π the cosine would grow again; there it is cos θ − m · sin m.

    Args:
        n_classes: number of classes.
        s: factor of the cosine.
        m: the margin, in radians.
    """

    def __init__(self, n_classes: int, s: float | None = 30.0, m: float = 0.5, **kwargs: Any) -> None:
        super().__init__(n_classes, s, **kwargs)
        self.m = m

    def with_margin(self, cosine: Any) -> Any:
        return _add_to_angle(cosine, self.m)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "m": self.m}


@keras.saving.register_keras_serializable(package="scena")
class CosFace(MarginHead):
    """Subtracts a margin from the cosine: cos θ − m. Wang et al. 2018.

    Args:
        n_classes: number of classes.
        s: factor of the cosine.
        m: the margin.
    """

    def __init__(self, n_classes: int, s: float | None = 30.0, m: float = 0.35, **kwargs: Any) -> None:
        super().__init__(n_classes, s, **kwargs)
        self.m = m

    def with_margin(self, cosine: Any) -> Any:
        return cosine - self.m

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "m": self.m}


@keras.saving.register_keras_serializable(package="scena")
class SphereFace(MarginHead):
    """Multiplies the angle: cos(m θ), continued so that it falls all the way to θ = π. Liu et al. 2017.

    Args:
        n_classes: number of classes.
        s: factor of the cosine; None takes the length of each embedding, as the paper does.
        m: the factor of the angle; the paper's 4 needs a learning rate that warms up.
    """

    def __init__(self, n_classes: int, s: float | None = None, m: float = 1.35, **kwargs: Any) -> None:
        super().__init__(n_classes, s, **kwargs)
        self.m = m

    def with_margin(self, cosine: Any) -> Any:
        return _falling_cosine(self.m * _angle(cosine))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "m": self.m}


@keras.saving.register_keras_serializable(package="scena")
class CombinedMargin(MarginHead):
    """All three margins: cos(m1 · θ + m2) − m3. ArcFace is (1, m, 0), CosFace (1, 0, m), SphereFace (m, 0, 0).

    Args:
        n_classes: number of classes.
        s: factor of the cosine; None takes the length of each embedding.
        m1: factor of the angle.
        m2: added to the angle, in radians.
        m3: subtracted from the cosine.
    """

    def __init__(
        self, n_classes: int, s: float | None = 30.0, m1: float = 1.0, m2: float = 0.3, m3: float = 0.2, **kwargs: Any
    ) -> None:
        super().__init__(n_classes, s, **kwargs)
        self.m1, self.m2, self.m3 = m1, m2, m3

    def with_margin(self, cosine: Any) -> Any:
        if self.m1 == 1:
            return _add_to_angle(cosine, self.m2) - self.m3
        return _falling_cosine(self.m1 * _angle(cosine) + self.m2) - self.m3

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "m1": self.m1, "m2": self.m2, "m3": self.m3}


def _angle(cosine: Any) -> Any:
    return ops.arccos(ops.clip(cosine, -1 + SAFE, 1 - SAFE))


def _add_to_angle(cosine: Any, margin: float) -> Any:
    """cos(θ + m) without an arccos, and ArcFace's straight line behind θ + m = π."""
    if margin == 0:
        return cosine
    sine = ops.sqrt(ops.maximum(1 - ops.square(cosine), SAFE**2))
    moved = cosine * math.cos(margin) - sine * math.sin(margin)
    return ops.where(cosine > math.cos(math.pi - margin), moved, cosine - margin * math.sin(margin))


def _falling_cosine(angle: Any) -> Any:
    """cos φ up to π, then its mirrored pieces one below the other: (−1)^k cos φ − 2k with k = ⌊φ / π⌋."""
    pieces = ops.floor(angle / math.pi)
    sign = 1 - 2 * ops.mod(pieces, 2)
    return sign * ops.cos(angle) - 2 * pieces


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
    margins: dict[type[HeadParams], type[MarginHead]] = {
        ArcFaceParams: ArcFace, CosFaceParams: CosFace, SphereFaceParams: SphereFace, CombinedMarginParams: CombinedMargin
    }  # fmt: skip
    for kind, head in margins.items():
        if isinstance(params, kind):
            return head(n_classes, **{name: getattr(params, name) for name in kind.__params__}, **kwargs)
    return Softmax(n_classes, **kwargs)


def create_center_loss(params: HeadParams, n_classes: int, **kwargs: Any) -> CenterLoss | None:
    """The center loss that goes with the head, if it has one; its weight is `params.weight`.

    Args:
        params: which head.
        n_classes: number of training classes.
        kwargs: further arguments of the layer, such as its name.
    """
    return CenterLoss(n_classes, params.alpha, **kwargs) if isinstance(params, SoftmaxCenterParams) else None
