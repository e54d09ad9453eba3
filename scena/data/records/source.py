"""Record files as a source of samples with random access."""

import io
from typing import Any

import numpy as np
from PIL import Image

from scena.data.errors import DataError
from scena.data.image.writer import IMAGE_SCHEMA
from scena.data.records.describe import info_of, record_sets
from scena.data.records.params import RecordsParams
from scena.data.sample import Sample
from scena.data.sources.split_source import SplitSource
from scena.storage.location import only_here, state_of


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
