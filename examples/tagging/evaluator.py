"""Whole fields: right only if they begin and end at the right letter."""

from itertools import groupby
from typing import Any, Self

import numpy as np

from scena import Evaluator, Sample

from .params import FieldsParams

Field = tuple[int, int, int]
"""Begin, end and tag."""


class Fields(Evaluator[FieldsParams]):
    """F1 of the fields that were found. The samples are post-processed: their padding is gone."""

    def __enter__(self) -> Self:
        self.found = self.there = self.right = 0
        return self

    def update_state(self, sample: Sample) -> None:
        found, there = fields(sample.outputs["tags"]), fields(sample.targets["tags"])
        self.found += len(found)
        self.there += len(there)
        self.right += len(found & there)

    def result(self) -> dict[str, Any]:
        return {"field_f1": 2 * self.right / max(1, self.found + self.there)}


def fields(tags: np.ndarray) -> set[Field]:
    """Runs of equal tags, without the tag 0 for other letters."""
    found, start = set(), 0
    for tag, run in groupby(tags.tolist()):
        end = start + len(list(run))
        if tag:
            found.add((start, end, tag))
        start = end
    return found
