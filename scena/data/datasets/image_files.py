"""Image files as a source: inputs["image"] is the encoded image, targets["label"] the number of its class."""

from typing import Any

from scena.data.datasets.params import ImageFilesParams
from scena.data.datasets.split_source import SplitSource
from scena.data.datasets.splits import TRAIN_NAMES, VALIDATION_NAMES
from scena.data.errors import DataError
from scena.data.image.found import FoundImages, images_in_folders, images_in_table
from scena.data.location import (
    entries,
    is_folder,
    is_remote,
    located,
    only_here,
    read_bytes,
    reason_of,
    state_of,
)
from scena.data.sample import Sample

SPLIT_FOLDERS = {*TRAIN_NAMES, *VALIDATION_NAMES, "test"}


class ImageFileSource(SplitSource[ImageFilesParams]):
    """Reads image files one by one; a processor decodes them."""

    def title(self) -> str:
        return str(self.params.csv or self.params.images)

    def open(self) -> dict[str, int]:
        if only_here(self.params.images, self.params.csv):
            self.main_process = True  # type: ignore[misc]
        self._found = self._find()
        names = [found.classes for found in self._found.values()]
        self.classes = names[0]
        if any(classes != self.classes for classes in names):
            raise DataError(
                f"The splits of {self.title()} have different classes: {dict(zip(self._found, names, strict=True))}."
            )
        return {split: len(found.entries) for split, found in self._found.items()}

    def _find(self) -> dict[str, FoundImages]:
        params = self.params
        if params.csv is not None:
            return {"all": images_in_table(params.csv, folder=params.images, delimiter=params.delimiter, header=params.header,
                                           path_column=params.path_column, label_column=params.label_column)}  # fmt: skip
        folder = located(params.images or ".")
        if is_folder(folder):
            folders = [path.name for path, inner in entries(folder) if inner]
            if folders and set(folders) <= SPLIT_FOLDERS:
                return {name: images_in_folders(folder / name) for name in folders}
        return {"all": images_in_folders(folder)}

    def fingerprint(self) -> list[Any]:
        """The images by name, with their classes and, on this machine, size and time of change."""
        return [
            [split, entry.name, entry.label, _state(entry.path)]
            for split, found in self._found.items()
            for entry in found.entries
        ]

    def read(self, split: str, place: int) -> Sample:
        entry = self._found[split].entries[place]
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
