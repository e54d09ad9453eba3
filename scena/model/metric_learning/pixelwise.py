"""Losses for yes-or-no maps, such as those of DeepPixBiS, and weights that make rare classes count as much as frequent ones."""

from typing import Any

import keras
from keras import ops


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
    """Binary cross-entropy of a map in which every pixel says yes or no about the whole picture.

    Called, it gives the mean over the batch, as any Keras loss; its `call` gives one value for each sample, as a model's `_loss` may
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
        """The arguments of the loss."""
        return {**super().get_config(), "label_smoothing": self.label_smoothing, "balanced": self.balanced}
