"""Record files as sources with random access: of samples, and of images with labels."""

import io
from typing import Any

import numpy as np
from PIL import Image

from scena.data.image.writer import IMAGE_SCHEMA
from scena.data.records.describe import info_of, record_sets
from scena.data.sample import Sample
from scena.data.sources.params import ImageRecordsParams, RecordsParams
from scena.data.sources.splits import SplitSource
from scena.errors import DataError
from scena.storage.location import only_here, state_of


class RecordSource(SplitSource[Any]):
    """Reads records by index; subclasses know what they hold."""

    def title(self) -> str:
        return str(self.params.records)

    def open(self) -> dict[str, int]:
        self.main_process = only_here(self.params.records)
        self.sets = {split or "all": records for split, records in record_sets(self.params.records).items()}
        self.info = info_of(self.params.records)
        self.classes = self.info.get("classes")
        self.structure: Any = next(iter(self.sets.values())).schema.structure
        return {split: len(records) for split, records in self.sets.items()}

    def check_features(self, *keys: str) -> None:
        """Raises if records have no feature of one of these names."""
        missing = [key for key in keys if not isinstance(self.structure, dict) or key not in self.structure]
        if missing:
            has = ", ".join(self.structure)
            raise DataError(f"The records of {self.title()!r} have no feature {missing[0]!r}; they have {has}.")

    def fingerprint(self) -> list[Any]:
        return [[split, *map(state_of, records.paths)] for split, records in self.sets.items()]


class Records(RecordSource):
    """Each record is a sample.

    Records of samples, as `scena records convert` writes them, and image records are what they were before; inputs and targets of
    others are chosen from the features by name.
    """

    params: RecordsParams

    def open(self) -> dict[str, int]:
        counts = super().open()
        self._inputs, self._targets = dict(self.params.input_keys), dict(self.params.target_keys)
        self._kind = "values" if self._inputs or self._targets else _kind_of(self.structure)
        self._arrays = self._kind == "images" and self.structure["image"].python == "array"
        if self._kind == "values" and isinstance(self.structure, dict):
            self.check_features(*self._inputs.values(), *self._targets.values())
            chosen = self._targets.values()
            self._inputs = self._inputs or {name: name for name in self.structure if name not in chosen}
        elif self._inputs or self._targets:
            where = f"The records of {self.title()!r}"
            raise DataError(f"{where} are not named, so input_keys and target_keys cannot choose.")
        return counts

    def read(self, split: str, index: int) -> Sample:
        value = self.sets[split][index]
        if self._kind == "samples":
            return Sample(inputs=value["inputs"], targets=value.get("targets"), meta=value.get("meta"))
        if self._kind == "images":
            return self._image(value)
        if isinstance(value, dict):
            inputs = {name: value[key] for name, key in self._inputs.items()}
            return Sample(inputs=inputs, targets={name: value[key] for name, key in self._targets.items()})
        if isinstance(value, tuple) and len(value) == 2:  # (inputs, targets), as Keras takes data sets
            return Sample(inputs=value[0], targets=value[1])
        return Sample(inputs=value)

    def _image(self, value: dict[str, Any]) -> Sample:
        image = value["image"]
        if self._arrays:
            array = np.asarray(Image.open(io.BytesIO(image)))
            image = array if array.ndim == 3 else array[..., None]
        return Sample(inputs={"image": image}, targets={"label": value["label"]}, meta=_name_of(value))


def _name_of(record: dict[str, Any]) -> dict[str, str] | None:
    """The meta of an image record: its name, if it has one."""
    return {"name": record["name"].decode(errors="replace")} if record["name"] else None


def _kind_of(structure: Any) -> str:
    """Whether records are samples, images, or other values."""
    if not isinstance(structure, dict):
        return "values"
    if "inputs" in structure and set(structure) <= {"inputs", "targets", "meta"}:
        return "samples"
    return "images" if set(structure) == set(IMAGE_SCHEMA.structure) else "values"


class ImageRecords(RecordSource):
    """Images and their labels.

    Attributes:
        image_size: height and width of all images, if they are known to be the same.
    """

    params: ImageRecordsParams

    def open(self) -> dict[str, int]:
        counts = super().open()
        self.check_features(self.params.image_key, self.params.label_key)
        self.image_size = _one_size(self.info, counts)
        return counts

    def read(self, split: str, index: int) -> Sample:
        record = self.sets[split][index]
        meta = _name_of(record) if "name" in self.structure else None
        image, label = record[self.params.image_key], record[self.params.label_key]
        return Sample(inputs={"image": image}, targets={"label": label}, meta=meta)

    def data(self, index: int) -> bytes:
        """The record of a sample, as it is stored."""
        split, within = self.locate(index)
        return self.sets[split].data(within)


def _one_size(info: dict[str, Any], counts: dict[str, int]) -> tuple[int, int] | None:
    """The size that an info file gives, if it is one and the file is about these records."""
    described = {split: value["count"] for split, value in info.get("splits", {}).items()}
    ranges = info.get("sizes") or {}
    if described != counts or any(low != high for low, high in ranges.values()) or not ranges:
        return None
    return ranges["height"][0], ranges["width"][0]
