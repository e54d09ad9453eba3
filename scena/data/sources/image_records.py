"""Image records as a source: inputs["image"] is the encoded image, targets["label"] the number of its class."""

from typing import Any

from scena.data.errors import DataError
from scena.data.records.describe import info_of, record_sets
from scena.data.records.source import name_of
from scena.data.sample import Sample
from scena.data.sources.params import ImageRecordsParams
from scena.data.sources.split_source import SplitSource
from scena.storage.location import located, only_here, state_of


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
