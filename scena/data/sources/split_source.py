"""The base of sources that have splits."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from scena.data.generator import RandomAccessGenerator
from scena.data.params import PipelineMode
from scena.data.sample import Sample
from scena.data.sources.params import SplitSourceParams
from scena.data.sources.splits import Part, Splits

P = TypeVar("P", bound=SplitSourceParams)


class SplitSource(RandomAccessGenerator[P]):
    """Samples of the chosen parts of a data set, by index. A subclass knows the splits and reads one sample.

    Attributes:
        classes: the names of the classes, where they are known.
        counts: the number of samples of each split of the data set.
    """

    def __init__(self, params: P, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.classes: list[str] | None = None
        self.counts = self.open()
        splits = Splits(self.counts, params.split_seed, self.title(), self.labels)
        self._parts: list[Part] = splits.choose(params.split, mode, params.known_sides())
        self._ends = np.cumsum([len(places) for _, places in self._parts])

    @abstractmethod
    def open(self) -> dict[str, int]:
        """Opens the data set and returns the number of samples of each split."""

    @abstractmethod
    def title(self) -> str:
        """The data set in messages."""

    @abstractmethod
    def read(self, split: str, place: int) -> Sample:
        """One sample of a split."""

    def labels(self, split: str) -> Sequence[Any] | None:
        """The class of each sample of a split, None where it takes reading them."""
        return None

    def strata(self) -> Sequence[Any] | None:
        found = [(self.labels(split), places) for split, places in self._parts]
        known = [np.asarray(labels)[places] for labels, places in found if labels is not None]
        return np.concatenate(known).tolist() if len(known) == len(found) else None

    @property
    def parts(self) -> list[Part]:
        """The splits that are read, and the places of the chosen samples in each."""
        return self._parts

    def __len__(self) -> int:
        return int(self._ends[-1])

    def locate(self, index: int) -> tuple[str, int]:
        """The split of a sample and its place there."""
        if not 0 <= index < len(self):
            raise IndexError(f"{self.title()} has {len(self)} samples here; asked for number {index}.")
        number = int(np.searchsorted(self._ends, index, side="right")) if len(self._parts) > 1 else 0
        split, places = self._parts[number]
        return split, int(places[index - (int(self._ends[number - 1]) if number else 0)])

    def __getitem__(self, index: int) -> Sample:
        return self.read(*self.locate(index))
