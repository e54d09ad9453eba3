"""Dates in many forms, and their specs: texts have different lengths, answers are ten characters long."""

from datetime import date, timedelta

import numpy as np

from scena import ArraySpec, DataBase, PipelineMode, RandomAccessGenerator, Sample

from .codec import ANSWER, decode, encode
from .params import DatesDataParams, DatesParams, TextsParams

FORMS = ("%d %B %Y", "%-d %B %Y", "%B %-d, %Y", "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%A %d %B %Y", "%m/%d/%y")


class Dates(RandomAccessGenerator[DatesParams]):
    """A random day in a random form for each index."""

    def __len__(self) -> int:
        return self.params.count if self.mode == PipelineMode.TRAINING else max(1, self.params.count // 10)

    def __getitem__(self, index: int) -> Sample:
        rng = np.random.default_rng([0 if self.mode == PipelineMode.TRAINING else 1, index])
        day = date(1970, 1, 1) + timedelta(days=int(rng.integers(0, 35770)))
        text = day.strftime(FORMS[rng.integers(len(FORMS))])
        return Sample(inputs={"text": encode(text)}, targets={"answer": encode(day.isoformat())}, meta=text)


class Texts(RandomAccessGenerator[TextsParams]):
    """Texts given by a user."""

    def __len__(self) -> int:
        return len(self.params.texts)

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs={"text": encode(self.params.texts[index])}, meta=self.params.texts[index])


class DatesData(DataBase[DatesDataParams]):
    """The text is padded to the longest of its batch."""

    inputs = {"text": ArraySpec((None,), "int32")}
    targets = {"answer": ArraySpec((ANSWER,), "int32")}

    def describe(self, sample: Sample) -> str:
        return f"{sample.meta} -> {decode(sample.outputs['answer'])}"
