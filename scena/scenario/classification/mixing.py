"""Mixup and cutmix: each image of a batch is mixed with another one of it."""

from typing import Any

import keras
from keras import ops

from scena.scenario.classification.params import MixParams


class Mixing(keras.layers.Layer):
    """Mixes the images of a batch; the loss is mixed in the same shares.

    Args:
        params: which way of mixing, and how strongly.
    """

    def __init__(self, params: MixParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mixup = params.mixup
        self.cutmix = params.cutmix
        self.seed_generator = keras.random.SeedGenerator()

    def call(self, image: Any, label: Any) -> tuple[Any, Any, Any]:
        """The mixed images, the class of each one's partner, and the share of its own class."""
        count = ops.shape(image)[0]
        # partners by a random rotation of the batch: nobody is left out, and any batch size works
        step = keras.random.randint((), 1, ops.maximum(count, 2), seed=self.seed_generator)
        partner = ops.mod(ops.arange(count) + step, count)
        other = ops.take(image, partner, axis=0)
        alpha = self.mixup or self.cutmix
        share = keras.random.beta((count,), alpha, alpha, seed=self.seed_generator)
        if self.mixup:
            weight = ops.reshape(share, (-1, 1, 1, 1))
            mixed = weight * image + (1 - weight) * other
        else:
            inside = self._boxes(image, share)
            mixed = ops.where(inside, other, image)
            share = 1 - ops.mean(ops.cast(inside, "float32"), axis=(1, 2, 3))
        return ops.cast(mixed, image.dtype), ops.take(label, partner, axis=0), share

    def _boxes(self, image: Any, share: Any) -> Any:
        """A rectangle at a random place for each image, whose area is about 1 - share."""
        count, height, width, _ = ops.shape(image)  # the height and width of early epochs may be smaller
        side = ops.sqrt(1 - share)
        rows = self._inside(count, height, side)
        columns = self._inside(count, width, side)
        return ops.logical_and(ops.reshape(rows, (count, height, 1, 1)), ops.reshape(columns, (count, 1, width, 1)))

    def _inside(self, count: Any, length: Any, side: Any) -> Any:
        size = ops.cast(length, "float32")
        middle = keras.random.uniform((count, 1), seed=self.seed_generator) * size
        half = ops.expand_dims(side, 1) * size / 2
        place = ops.expand_dims(ops.arange(length, dtype="float32"), 0) + 0.5
        return ops.abs(place - middle) < half

    def get_config(self) -> dict[str, Any]:
        """The plain values of this layer."""
        return {**super().get_config(), "params": {"mixup": self.mixup, "cutmix": self.cutmix}}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Mixing":
        """Rebuilds the layer."""
        config = dict(config)
        return cls(MixParams(**config.pop("params")), **config)
