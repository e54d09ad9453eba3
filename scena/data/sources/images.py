"""Images with a class as sources: files, and rows of arrays. targets["label"] is the number of the class."""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from scena.data.image.listing import FoundImages, find_images
from scena.data.sample import Sample
from scena.data.sources.arrays import array_state, load_array
from scena.data.sources.params import ImageArraysParams, ImageFilesParams
from scena.data.sources.splits import SplitSource, tell_once
from scena.errors import DataError
from scena.storage.location import is_remote, only_here, read_bytes, reason_of, state_of


class ImageFileSource(SplitSource[ImageFilesParams]):
    """Reads image files one by one; inputs["image"] is encoded, and a processor decodes it."""

    def title(self) -> str:
        return str(self.params.csv or self.params.images)

    def open(self) -> dict[str, int]:
        self.main_process = only_here(self.params.images, self.params.csv)
        found = find_images(self.params)
        self.classes = found.classes
        if found.skipped:
            most = "; ".join(f"{name} ({reason})" for name, reason in found.skipped[:5])
            tell_once(f"{self.title()}: skipped {most}{'; …' if len(found.skipped) > 5 else ''}.")
        if found.strays:
            tell_once(f"{self.title()}: {_told_strays(found.strays)}.", logging.WARNING)
        if self.params.csv is not None:
            _warn_of_many_classes(self.title(), found)
        self._splits = found.splits or {"all": found.entries}
        return {split: len(entries) for split, entries in self._splits.items()}

    def labels(self, split: str) -> Sequence[Any] | None:
        return [entry.label for entry in self._splits[split]]

    def fingerprint(self) -> list[Any]:
        found = [(split, entry) for split, entries in self._splits.items() for entry in entries]
        return [[split, entry.name, entry.label, _state(entry.path)] for split, entry in found]

    def read(self, split: str, index: int) -> Sample:
        entry = self._splits[split][index]
        try:
            data = read_bytes(entry.path)
        except OSError as error:
            raise DataError(f"The image {entry.name!r} of {self.title()} cannot be read: {reason_of(error)}.") from None
        return Sample(inputs={"image": data}, targets={"label": entry.label}, meta={"name": entry.name})


def _told_strays(names: list[str]) -> str:
    if len(names) == 1:
        return f"skipped the file {names[0]!r}, which is not an image"
    return f"skipped {len(names)} files in class folders that are not images, such as {names[0]!r}"


def _warn_of_many_classes(title: str, found: FoundImages) -> None:
    """Warns of a table whose labels hardly repeat, as numbers, names of files and texts do."""
    counts = Counter(entry.label for entry in found.entries)
    alone = [label for label, count in counts.items() if count == 1]
    if len(counts) > 10 and len(alone) > len(counts) / 2:
        tell_once(
            f"{title}: {len(alone)} of its {len(counts)} classes, such as {found.classes[alone[0]]!r}, have one image only. Is another "
            "column the label (label_column)? Numbers to predict are no classes: see 'Predict a number' in the recipes.",
            logging.WARNING,
        )


def _state(path: Any) -> list[Any]:
    try:
        return [] if is_remote(path) else state_of(path)
    except OSError:  # reading it will say so
        return []


class ImageArrays(SplitSource[ImageArraysParams]):
    """Reads rows of two arrays; its classes are named by their numbers."""

    def title(self) -> str:
        return self.params.images

    def open(self) -> dict[str, int]:
        params = self.params
        self.main_process = only_here(params.images, params.labels)
        self._images = load_array(params.images)
        labels = np.asarray(load_array(params.labels)[()])
        if len(self._images.shape) not in (3, 4):
            shape = tuple(self._images.shape)
            raise DataError(f"{params.images} must have the axes samples, height, width[, channels], not {shape}.")
        if labels.ndim == 2 and labels.shape[1] == 1:  # as Keras' data sets come
            labels = labels[:, 0]
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or (labels.size and labels.min() < 0):
            received = f"{labels.dtype.name} of shape {labels.shape}"
            raise DataError(f"{params.labels} must hold one whole number from 0 for each image. Received: {received}.")
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
        return [array_state(self.params.images), array_state(self.params.labels)]

    def read(self, split: str, index: int) -> Sample:
        image = np.asarray(self._images[index])
        image = image if image.ndim == 3 else image[..., None]
        return Sample(inputs={"image": image}, targets={"label": int(self._labels[index])})
