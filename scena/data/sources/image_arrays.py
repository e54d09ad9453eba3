"""Images of arrays as a source: inputs["image"] is a row, targets["label"] the number of its class."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scena.data.errors import DataError
from scena.data.sample import Sample
from scena.data.sources.arrays import array_state, load_array
from scena.data.sources.params import ImageArraysParams
from scena.data.sources.split_source import SplitSource
from scena.storage.location import only_here


class ImageArrays(SplitSource[ImageArraysParams]):
    """Reads rows of two arrays; its classes are named by their numbers."""

    def title(self) -> str:
        return self.params.images

    def open(self) -> dict[str, int]:
        params = self.params
        if only_here(params.images, params.labels):
            self.main_process = True  # type: ignore[misc]
        self._images = load_array(params.images)
        labels = np.asarray(load_array(params.labels)[()])
        if len(self._images.shape) not in (3, 4):
            raise DataError(
                f"{params.images} must have the axes samples, height, width and perhaps channels. "
                f"Received: shape {tuple(self._images.shape)}."
            )
        if labels.ndim == 2 and labels.shape[1] == 1:  # as Keras' data sets come
            labels = labels[:, 0]
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or (labels.size and labels.min() < 0):
            raise DataError(
                f"{params.labels} must hold one whole number from 0 for each image. "
                f"Received: {labels.dtype.name} of shape {labels.shape}."
            )
        if len(labels) != len(self._images):
            raise DataError(f"{params.images} has {len(self._images)} images, {params.labels} {len(labels)} labels.")
        if not len(labels):
            raise DataError(f"{params.images} holds no image.")
        self._labels = labels
        self.classes = [str(number) for number in range(int(labels.max()) + 1)]
        return {"all": len(labels)}

    def labels(self, split: str) -> Sequence[Any] | None:
        return self._labels.tolist()

    def fingerprint(self) -> list[Any]:
        """Size and time of change of both files."""
        return [array_state(self.params.images), array_state(self.params.labels)]

    def read(self, split: str, place: int) -> Sample:
        image = np.asarray(self._images[place])
        return Sample(
            inputs={"image": image if image.ndim == 3 else image[..., None]},
            targets={"label": int(self._labels[place])},
        )
