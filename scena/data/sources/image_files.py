"""Image files as a source: inputs["image"] is the encoded image, targets["label"] the number of its class."""

import logging
from collections.abc import Sequence
from typing import Any

from scena.data.image.listing import find_images
from scena.data.sample import Sample
from scena.data.sources.params import ImageFilesParams
from scena.data.sources.splits import SplitSource
from scena.errors import DataError
from scena.storage.location import (
    is_remote,
    only_here,
    read_bytes,
    reason_of,
    state_of,
)

logger = logging.getLogger("scena.data")


class ImageFileSource(SplitSource[ImageFilesParams]):
    """Reads image files one by one; a processor decodes them."""

    def title(self) -> str:
        return str(self.params.csv or self.params.images)

    def open(self) -> dict[str, int]:
        if only_here(self.params.images, self.params.csv):
            self.main_process = True  # type: ignore[misc]
        found = find_images(self.params)
        self.classes = found.classes
        if found.left_out:
            most = "; ".join(f"{name} ({reason})" for name, reason in found.left_out[:5])
            logger.info("%s: left out %s%s.", self.title(), most, "; …" if len(found.left_out) > 5 else "")
        self._splits = found.splits or {"all": found.entries}
        return {split: len(entries) for split, entries in self._splits.items()}

    def labels(self, split: str) -> Sequence[Any] | None:
        return [entry.label for entry in self._splits[split]]

    def fingerprint(self) -> list[Any]:
        """The images by name, with their classes and, on this machine, size and time of change."""
        return [
            [split, entry.name, entry.label, _state(entry.path)]
            for split, entries in self._splits.items()
            for entry in entries
        ]

    def read(self, split: str, place: int) -> Sample:
        entry = self._splits[split][place]
        try:
            data = read_bytes(entry.path)
        except OSError as error:
            raise DataError(f"The image {entry.name!r} of {self.title()} cannot be read: {reason_of(error)}.") from None
        return Sample(inputs={"image": data}, targets={"label": entry.label}, meta={"name": entry.name})


def _state(path: Any) -> list[Any]:
    try:
        return [] if is_remote(path) else state_of(path)
    except OSError:  # reading it will say so
        return []
