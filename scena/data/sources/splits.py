"""Parts of a data set: `train`, `train[:80%]`, `train[1000:]+test`, and the defaults."""

import logging
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from scena.data.generator import RandomAccessGenerator
from scena.data.params import PipelineMode
from scena.data.sample import Sample
from scena.data.sources.params import SplitSourceParams
from scena.data.stages.feed import representative_order
from scena.errors import DataError

logger = logging.getLogger("scena.data")


_told: set[str] = set()


def tell_once(text: str, level: int = logging.INFO) -> None:
    """A source may be opened several times in one process."""
    if logger.isEnabledFor(level) and text not in _told:
        _told.add(text)
        logger.log(level, "%s", text)


TRAIN_NAMES = ("train", "training", "all")
VALIDATION_NAMES = ("validation", "val", "valid", "dev")
TEST_NAMES = ("test", "testing", "evaluation", "eval")
_PART = re.compile(r"^(?P<name>[^\[\]+]+)(?:\[(?P<start>-?\d+%?)?:(?P<stop>-?\d+%?)?\])?$")
Part = tuple[str, np.ndarray[Any, Any]]
"""The name of a split, and the indices of the chosen samples in it."""
Labels = Callable[[str], Sequence[Any] | None]
"""The class of each sample of a split, None where it takes reading them."""


class _Term(NamedTuple):
    """A part as it was written; `whole`: without a slice."""

    name: str
    indices: np.ndarray[Any, Any]
    whole: bool


class Splits:
    """The splits of a data set, and dividing them between training and validation.

    Without a split for validation a tenth is kept for it, drawn by `seed`; `labels` give each class its share.
    """

    def __init__(self, counts: dict[str, int], seed: int, name: str, labels: Labels = lambda split: None) -> None:
        self.counts = counts
        self.seed = seed
        self.name = name
        self.labels = labels
        only = next(iter(counts)) if len(counts) == 1 and not {*counts} & {*VALIDATION_NAMES, *TEST_NAMES} else None
        self.train = next((known for known in TRAIN_NAMES if known in counts), only)
        self.validation = next((known for known in VALIDATION_NAMES if known in counts), None)

    def choose(
        self, split: str | None, mode: PipelineMode, sides: tuple[str, str] | None = None, other_data: bool = False
    ) -> list[Part]:
        """The samples that a pipeline reads.

        Args:
            split: as above. None: the training split to train on, the validation split to validate on. A data set without a
                validation split is validated on a seeded tenth of its training split, which is then not trained on.
            mode: whether to train or to validate.
            sides: what a training and its validation read of this data set ("" for the default); None: there is no training.
                Neither gets what the other one has, unless the user named it.
            other_data: the training read another data set, so this one is validated on as a whole if it has no splits.
        """
        if mode is PipelineMode.TRAINING:
            terms = None if split is None else self._terms(split)
            if terms is not None and sides is None:
                return _parts(terms)
            return self._divided(terms, self._named(sides[1]) if sides else None)[0]
        named = self._named(split)
        if named is not None:
            checked = _parts(self._terms(named))
            if sides is None:
                return checked
            read = self._divided(self._terms(sides[0]) if sides[0] else None, self._named(sides[1]))[0]
        elif len(self.counts) == 1 and (other_data or (self.train is None and self.validation is None)):
            [(name, count)] = self.counts.items()  # a test set on its own
            if other_data and mode is not PipelineMode.PREDICTION:
                tell_once(f"{self.name} is not the data set of the training: all its {count} samples are used.")
            return self._whole(name)
        else:
            # other data may lack the training's splits
            trained = self._terms(sides[0], known_only=True) if sides and sides[0] else []
            read, checked = self._divided(trained or None, None)
        self._tell(read, checked, automatic=named is None)
        return checked

    def _divided(self, terms: list[_Term] | None, validation: str | None) -> tuple[list[Part], list[Part]]:
        """What is trained on, and what is validated on."""
        if validation is not None:
            named = _parts(self._terms(validation))
            if terms is not None:
                return _parts(terms), named
            name = self._train_name()
            rest = self._without(name, named)
            if not len(rest):
                raise DataError(
                    f"{self.name}: the validation reads all of {name} (split {validation!r}), and nothing is left to train on. "
                    "Name less for it (--val.split), or name what to train on (--train.split)."
                )
            return [(name, rest)], named
        if self.validation is not None:
            read = _parts(terms) if terms else self._whole(self.train) if self.train is not None else []
            rest = self._without(self.validation, read)
            if not len(rest):
                raise self._nothing_left()
            return read, [(self.validation, rest)]
        return self._with_a_tenth_kept(terms)

    def _with_a_tenth_kept(self, terms: list[_Term] | None) -> tuple[list[Part], list[Part]]:
        name = self._train_name()
        terms = terms or [_Term(name, np.arange(self.counts[name]), True)]
        # who writes `train` leaves the tenth to the validation; who writes train[:100] wants just these
        free = self._without(name, _parts([term for term in terms if not term.whole]))
        count = self.counts[name]
        tenth = min(len(free), max(1, count // 10)) if count > 1 else 0
        if count > 1 and not tenth:
            raise self._nothing_left()
        labels = self.labels(name)
        strata = None if labels is None else np.asarray(labels)[free]
        order = representative_order(len(free), np.random.default_rng([self.seed, count]), strata)
        kept = [(name, np.sort(free[order[:tenth]]))]
        rest = self._without(name, kept)
        return [(term.name, rest if term.whole and term.name == name else term.indices) for term in terms], kept

    def _named(self, split: str | None) -> str | None:
        """A split for validation that was named; None for the automatic one, for which `validation` stands where there is none."""
        return None if not split or (split in VALIDATION_NAMES and split not in self.counts) else split

    def _whole(self, name: str) -> list[Part]:
        return [(name, np.arange(self.counts[name]))]

    def _train_name(self) -> str:
        if self.train is None:
            splits = ", ".join(self.counts)
            raise DataError(f"{self.name} has the splits {splits}, none of which is for training: name one (split).")
        return self.train

    def _without(self, name: str, parts: list[Part]) -> np.ndarray[Any, Any]:
        """The indices of a split that are in none of some parts."""
        free = np.ones(self.counts[name], bool)
        for other, indices in parts:
            if other == name:
                free[indices] = False
        return np.flatnonzero(free)

    def _nothing_left(self) -> DataError:
        where = self.validation or self.train
        return DataError(
            f"{self.name}: the training reads all of {where}, and nothing is left to validate on. Name a split for it "
            f"(--val.split; there are {', '.join(self.counts)}), or read less in training (--train.split)."
        )

    def _tell(self, train: list[Part], validation: list[Part], automatic: bool) -> None:
        """Logs where the validation samples come from if they have no split, and warns if they are trained on."""
        total = sum(len(indices) for _, indices in validation)
        free = sum(len(np.intersect1d(indices, self._without(name, train))) for name, indices in validation)
        if free < total:
            logger.warning("%s: %d of the %d validation samples are trained on.", self.name, total - free, total)
        elif automatic and self.validation is None:
            count = self.counts[validation[0][0]]
            of = f"the {count} samples of {self.train}" if len(self.counts) > 1 else f"its {count} samples"
            tell_once(
                f"{self.name} has no validation split: {total} of {of} are kept for validation (seed {self.seed}) and not trained on."
            )

    def _terms(self, text: str, known_only: bool = False) -> list[_Term]:
        terms = [self._term(part.strip()) for part in text.split("+")]
        unknown = [term for term in terms if isinstance(term, str)]
        if unknown and not known_only:
            raise DataError(f"{self.name} has no split {unknown[0]!r}; it has {', '.join(self.counts)}.")
        return [term for term in terms if not isinstance(term, str)]

    def _term(self, text: str) -> _Term | str:
        """A part as it is written; just its name if there is no such split."""
        found = _PART.match(text)
        if found is None:
            raise DataError(f"A split is written as train, train[:80%] or train[100:200]+test. Received: {text!r}.")
        name = self._known(found["name"].strip())
        if name not in self.counts:
            return name
        count = self.counts[name]
        start, stop = _bound(found["start"], count, 0), _bound(found["stop"], count, count)
        return _Term(name, np.arange(start, max(start, stop)), "[" not in text)

    def _known(self, name: str) -> str:
        """A split by its name, or by another usual name for the same."""
        if name in self.counts:
            return name
        usual = self.train if name in ("train", "training") else self.validation if name in VALIDATION_NAMES else None
        return usual or name


def _parts(terms: list[_Term]) -> list[Part]:
    return [(term.name, term.indices) for term in terms]


def _bound(text: str | None, count: int, default: int) -> int:
    if text is None:
        return default
    value = round(int(text[:-1]) * count / 100) if text.endswith("%") else int(text)
    return min(max(value + count if value < 0 else value, 0), count)


def label_numbers(classes: Sequence[str] | None, known: Sequence[str], title: str) -> list[int] | None:
    """For each class of a data set its number in a model, found by name; None if labels stay as they are.

    Raises:
        DataError: the model does not know a class.
    """
    if not classes or not known or list(classes) == list(known) or _are_numbers(classes) or _are_numbers(known):
        return None
    unknown = [name for name in classes if name not in known]
    if not unknown:
        tell_once(
            f"{title} has {len(classes)} of the {len(known)} classes of the model, or another order: labels go by name."
        )
        return [known.index(name) for name in classes]
    theirs, ours = (", ".join(names[:6]) + (", …" if len(names) > 6 else "") for names in (list(classes), list(known)))
    if len(unknown) == len(classes) == len(known):
        text = f"{title} has no class of the model's names: {theirs} are taken for {ours}, in this order."
        tell_once(text, logging.WARNING)
        return None
    raise DataError(
        f"{title} has the class {unknown[0]!r}, which the model was not trained on. It has {theirs}; the model knows {ours}."
    )


def _are_numbers(names: Sequence[str]) -> bool:
    """Whether classes have no names of their own."""
    return list(names) == [str(number) for number in range(len(names))]


P = TypeVar("P", bound=SplitSourceParams)


class SplitSource(RandomAccessGenerator[P]):
    """Samples of the chosen parts of a data set, by index. A subclass knows the splits and reads one sample.

    Attributes:
        classes: the names of the classes, where they are known.
        counts: the number of samples of each split of the data set.
        label_numbers: what each label is in a model with other classes; None: the same.
    """

    def __init__(self, params: P, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.classes: list[str] | None = None
        self.counts = self.open()
        splits = Splits(self.counts, params.split_seed, self.title(), self.labels)
        self._parts: list[Part] = splits.choose(params.split, mode, params.known_sides(), params.is_other_data)
        self._ends = np.cumsum([len(indices) for _, indices in self._parts])
        self.label_numbers = label_numbers(self.classes, params.model_classes, self.title())

    @abstractmethod
    def open(self) -> dict[str, int]:
        """Opens the data set and returns the number of samples of each split."""

    @abstractmethod
    def title(self) -> str:
        """The data set in messages."""

    @abstractmethod
    def read(self, split: str, index: int) -> Sample:
        """One sample of a split."""

    def labels(self, split: str) -> Sequence[Any] | None:
        """The class of each sample of a split, None where it takes reading them."""
        return None

    def strata(self) -> Sequence[Any] | None:
        found = [(self.labels(split), indices) for split, indices in self._parts]
        known = [np.asarray(labels)[indices] for labels, indices in found if labels is not None]
        return np.concatenate(known).tolist() if len(known) == len(found) else None

    @property
    def parts(self) -> list[Part]:
        """The splits that are read, and the indices of the chosen samples in each."""
        return self._parts

    def __len__(self) -> int:
        return int(self._ends[-1])

    def locate(self, index: int) -> tuple[str, int]:
        """The split of a sample and its index there."""
        if not 0 <= index < len(self):
            raise IndexError(f"{self.title()} has {len(self)} samples here; asked for number {index}.")
        number = int(np.searchsorted(self._ends, index, side="right")) if len(self._parts) > 1 else 0
        split, indices = self._parts[number]
        return split, int(indices[index - (int(self._ends[number - 1]) if number else 0)])

    def __getitem__(self, index: int) -> Sample:
        sample = self.read(*self.locate(index))
        if self.label_numbers is None or not isinstance(sample.targets, dict) or "label" not in sample.targets:
            return sample
        return sample.new_targets({**sample.targets, "label": self.label_numbers[int(sample.targets["label"])]})
