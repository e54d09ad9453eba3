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
from scena.storage.location import located, only_here, state_of


class Records(SplitSource[RecordsParams]):
    """Each record is a sample.

    Records of samples, as `scena records convert` writes them, and image records are what they were before; of others, inputs and
    targets are chosen from the features by name.
    """

    def title(self) -> str:
        return repr(self.params.records)

    def open(self) -> dict[str, int]:
        params = self.params
        if only_here(params.records):
            self.main_process = True  # type: ignore[misc]
        self.sets = {split or "all": records for split, records in record_sets(params.records).items()}
        self.classes = info_of(params.records).get("classes")
        self._inputs, self._targets = dict(params.input_keys), dict(params.target_keys)
        structure = next(iter(self.sets.values())).schema.structure
        self._kind = _kind_of(structure)
        if self._kind != "values" and not self._inputs and not self._targets:
            self._arrays = self._kind == "images" and structure["image"].python == "array"
            return self._counts()
        self._kind = "values"
        if not isinstance(structure, dict):
            if params.input_keys or params.target_keys:
                raise DataError(
                    f"The records of {params.records!r} are not named, so input_keys and target_keys cannot choose."
                )
            return self._counts()
        chosen = {*self._inputs.values(), *self._targets.values()}
        unknown = sorted(chosen - set(structure))
        if unknown:
            raise DataError(
                f"The records of {params.records!r} have no {unknown[0]!r}; they have {', '.join(structure)}."
            )
        if not self._inputs:
            self._inputs = {name: name for name in structure if name not in self._targets.values()}
        return self._counts()

    def _counts(self) -> dict[str, int]:
        return {split: len(records) for split, records in self.sets.items()}

    def fingerprint(self) -> list[Any]:
        """Size and time of change of each file."""
        return [[split, *map(state_of, records.paths)] for split, records in self.sets.items()]

    def read(self, split: str, place: int) -> Sample:
        value = self.sets[split][place]
        if self._kind == "samples":
            return Sample(inputs=value["inputs"], targets=value.get("targets"), meta=value.get("meta"))
        if self._kind == "images":
            return self._image(value)
        if isinstance(value, dict):
            return Sample(
                inputs={name: value[key] for name, key in self._inputs.items()},
                targets={name: value[key] for name, key in self._targets.items()},
            )
        if isinstance(value, tuple) and len(value) == 2:  # (inputs, targets), as Keras takes data sets
            return Sample(inputs=value[0], targets=value[1])
        return Sample(inputs=value)

    def _image(self, value: dict[str, Any]) -> Sample:
        image = value["image"]
        if self._arrays:
            array = np.asarray(Image.open(io.BytesIO(image)))
            image = array if array.ndim == 3 else array[..., None]
        return Sample(inputs={"image": image}, targets={"label": value["label"]}, meta=name_of(value))


def name_of(record: dict[str, Any]) -> dict[str, str] | None:
    """The meta of an image record: its name, if it has one."""
    return {"name": record["name"].decode(errors="replace")} if record["name"] else None


def _kind_of(structure: Any) -> str:
    """Whether records are samples, images, or other values."""
    if not isinstance(structure, dict):
        return "values"
    if "inputs" in structure and set(structure) <= {"inputs", "targets", "meta"}:
        return "samples"
    return "images" if set(structure) == set(IMAGE_SCHEMA.structure) else "values"


class ImageRecords(SplitSource[ImageRecordsParams]):
    """Reads records by index.

    Attributes:
        image_size: height and width of all images, if they are known to be the same.
    """

    def title(self) -> str:
        return str(self.params.records)

    def open(self) -> dict[str, int]:
        folder = located(self.params.records)
        if only_here(self.params.records):
            self.main_process = True  # type: ignore[misc]
        self.sets = {split or "all": records for split, records in record_sets(folder).items()}
        info = info_of(folder)
        self.classes = info.get("classes")
        structure = next(iter(self.sets.values())).schema.structure
        for key in (self.params.image_key, self.params.label_key):
            if not isinstance(structure, dict) or key not in structure:
                raise DataError(
                    f"The records of {self.title()} have no feature {key!r}; they have {', '.join(structure)}."
                )
        self._named = "name" in structure
        counts = {split: len(records) for split, records in self.sets.items()}
        self.image_size = _one_size(info, counts)
        return counts

    def read(self, split: str, place: int) -> Sample:
        record = self.sets[split][place]
        meta = name_of(record) if self._named else None
        return Sample(
            inputs={"image": record[self.params.image_key]}, targets={"label": record[self.params.label_key]}, meta=meta
        )

    def fingerprint(self) -> list[Any]:
        """Size and time of change of each file."""
        return [[split, *map(state_of, records.paths)] for split, records in self.sets.items()]

    def data(self, index: int) -> bytes:
        """The record of a sample, as it is stored."""
        split, place = self.locate(index)
        return self.sets[split].data(place)


def _one_size(info: dict[str, Any], counts: dict[str, int]) -> tuple[int, int] | None:
    """The size that an info file gives, if it is one and the file is about these records."""
    described = {split: value["count"] for split, value in info.get("splits", {}).items()}
    ranges = info.get("sizes") or {}
    if described != counts or any(low != high for low, high in ranges.values()) or not ranges:
        return None
    return ranges["height"][0], ranges["width"][0]
