"""How often the nearest other embedding of a batch is of the same class: a measure that needs no classifier, so classes may be new."""

from typing import Any

import keras
from keras import ops

SHORTEST = 1e-12
"""Vectors are divided by at least the root of this; the gradient stays finite at zero."""


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

    It keeps a sum and a count, so batches of several workers add up to the mean over all samples. It depends on what is in a batch
    together. A batch of one sample has no other, and does not count.
    """

    def __init__(self, name: str = "embedding_accuracy", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Counts a batch.

        Args:
            y_true: labels.
            y_pred: embeddings.
            sample_weight: how much each sample counts.
        """
        same = nearest_is_same(y_true, y_pred)
        weights = ops.ones_like(same) * ops.cast(ops.shape(same)[0] > 1, "float32")
        if sample_weight is not None:
            weights = weights * ops.reshape(ops.cast(sample_weight, "float32"), (-1,))
        super().update_state(same, sample_weight=weights)
