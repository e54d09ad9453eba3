"""Losses and metrics of embeddings and yes-or-no maps: nearest-neighbour accuracy, pixelwise cross-entropy, class weights."""

from typing import Any

import keras
from keras import ops

SHORTEST = 1e-12
"""Vectors are divided by at least the root of this, so that the gradient stays finite at zero."""


def normalised(vectors: Any, axis: int = -1) -> Any:
    """The vectors with length one, in single precision; a vector of zeros stays one."""
    vectors = ops.cast(vectors, "float32")
    return vectors * ops.rsqrt(ops.maximum(ops.sum(ops.square(vectors), axis=axis, keepdims=True), SHORTEST))


def nearest_is_same(labels: Any, embeddings: Any) -> Any:
    """For each sample 1 if the nearest other sample of the batch has its label, else 0. Lengths do not count, only directions.

    Args:
        labels: whole numbers, one for each sample.
        embeddings: vectors, one for each sample.
    """
    labels = ops.reshape(labels, (-1,))
    direction = normalised(embeddings)
    similarity = ops.matmul(direction, ops.transpose(direction))
    similarity = similarity - 4.0 * ops.eye(ops.shape(labels)[0], dtype="float32")  # no sample is its own neighbour
    nearest = ops.argmax(similarity, axis=-1)
    return ops.cast(ops.equal(ops.take(labels, nearest), labels), "float32")


@keras.saving.register_keras_serializable(package="scena")
class EmbeddingAccuracy(keras.metrics.Mean):
    """The share of samples whose nearest other sample of the batch has the same label.

    It needs no classifier, so classes may be new. It keeps a sum and a count, so batches of several workers add up to the mean over
    all samples. It depends on the composition of batches. A batch of one sample does not count.
    """

    def __init__(self, name: str = "embedding_accuracy", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        same = nearest_is_same(y_true, y_pred)
        weights = ops.ones_like(same) * ops.cast(ops.shape(same)[0] > 1, "float32")
        if sample_weight is not None:
            weights = weights * ops.reshape(ops.cast(sample_weight, "float32"), (-1,))
        super().update_state(same, sample_weight=weights)


def balanced_weights(labels: Any, n_classes: int) -> Any:
    """A weight for each sample: B / (n_c · C) for a batch of B samples, n_c of them of its class, and C classes.

    Classes then count alike however many samples they have; the mean of the weights is one if all classes are in the batch.

    Args:
        labels: whole numbers from 0 to C − 1, one for each sample.
        n_classes: C.
    """
    labels = ops.cast(ops.reshape(labels, (-1,)), "int32")
    ones = ops.ones_like(labels, dtype="float32")
    counts = ops.segment_sum(ones, labels, num_segments=n_classes)
    return ops.sum(ones) / (ops.take(counts, labels) * n_classes)


@keras.saving.register_keras_serializable(package="scena")
class PixelwiseBinaryCrossentropy(keras.losses.Loss):
    """Binary cross-entropy of a map in which every pixel classifies the whole image as yes or no.

    Called, it gives the mean over the batch, as any Keras loss; its `call` gives one value for each sample, as a model's `loss` may
    return it.

    Args:
        label_smoothing: the wanted values are this share of the way to 0.5.
        balanced: weighs samples so that both classes count alike in each batch.
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        balanced: bool = True,
        name: str = "pixelwise_binary_crossentropy",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.label_smoothing = label_smoothing
        self.balanced = balanced

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The loss of each sample.

        Args:
            y_true: 0 or 1 for each sample.
            y_pred: maps of logits, of any shape after the batch.
        """
        labels = ops.reshape(y_true, (-1, 1))
        logits = ops.cast(ops.reshape(y_pred, (ops.shape(labels)[0], -1)), "float32")
        wanted = ops.cast(labels, "float32") * (1 - self.label_smoothing) + self.label_smoothing / 2
        # log(1 + e^x) − x · t, which stays finite for any logit
        loss = ops.mean(ops.softplus(logits) - logits * wanted, axis=-1)
        return loss * balanced_weights(labels, 2) if self.balanced else loss

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "label_smoothing": self.label_smoothing, "balanced": self.balanced}
