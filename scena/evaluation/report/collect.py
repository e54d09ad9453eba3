"""What a report keeps of the samples of one validation: classes and scores, or numbers, and a few examples with their inputs."""

import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from scena.data.sample import Sample

EXAMPLES = 24
"""How many examples are shown."""
SCORED = 100_000
"""Curves are drawn from at most so many samples, which bounds the memory."""


class Example(NamedTuple):
    """A sample to show."""

    inputs: Any
    outputs: Any
    targets: Any
    meta: Any
    target: int | None
    predicted: int | None
    score: float | None


class ClassScores(NamedTuple):
    """How well one class is found; None where it is 0 of 0."""

    precision: float | None
    recall: float | None
    f1: float | None
    support: int


class _ContradictionError(Exception):
    """A sample does not fit what was taken for classes."""


class Reading:
    """One way to read classes from samples, by the names of the target, of probabilities (a vector, or the one of class 1) and of
    the predicted class; and what was counted so.
    """

    def __init__(self, target: str, scores: str | None, predicted: str | None) -> None:
        self._target, self._scores, self._predicted = target, scores, predicted
        self.pairs: dict[tuple[int, int], int] = {}
        """How often each (target, predicted) class was met."""
        self.targets: list[int] = []
        self.scores: list[np.ndarray] = []
        self._wrong: list[tuple[float, int, Example]] = []
        self._count = 0

    def add(self, sample: Sample) -> tuple[int, int, float | None]:
        """Counts a sample; returns its target, the predicted class and the score of that."""
        target, scores, predicted = self._classes(sample)
        score = float(scores[predicted]) if scores is not None else None
        self._count += 1
        self.pairs[target, predicted] = self.pairs.get((target, predicted), 0) + 1
        if scores is not None and len(self.targets) < SCORED:
            self.targets.append(target)
            self.scores.append(np.asarray(scores, "float32"))
        if target != predicted:
            entry = (score or 0.0, -self._count, _example(sample, target, predicted, score))
            if len(self._wrong) < EXAMPLES:
                heapq.heappush(self._wrong, entry)
            elif entry[:2] > self._wrong[0][:2]:
                heapq.heapreplace(self._wrong, entry)
        return target, predicted, score

    @property
    def errors(self) -> list[Example]:
        """Wrong answers, those first that the model was most certain of."""
        return [example for _, _, example in sorted(self._wrong, key=lambda entry: entry[:2], reverse=True)]

    def _classes(self, sample: Sample) -> tuple[int, np.ndarray | None, int]:
        target = int(np.asarray(sample.targets[self._target]).item())
        if self._scores is None:
            return target, None, int(np.asarray(sample.outputs[self._predicted]).item())
        scores = np.asarray(sample.outputs[self._scores])
        if scores.size > 1:
            return target, scores, int(scores.argmax())
        if not _is_probability(scores) or not _is_binary(np.asarray(sample.targets[self._target])):
            raise _ContradictionError
        one = float(scores.item())
        chosen = int(one >= 0.5)
        if self._predicted is not None:  # the model may have a threshold of its own
            chosen = int(np.asarray(sample.outputs[self._predicted]).item())
            if chosen > 1:
                raise _ContradictionError
        return target, np.array([1 - one, one]), chosen


class Collected:
    """Called with each sample; finds out by itself whether the outputs are classes.

    They are if there is a target that is a single whole number, and an output that is a vector of probabilities, the single
    probability of class 1 (of targets 0 and 1), or a single whole number.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: list[Example] = []
        self.numbers: list[tuple[float, float]] = []
        """Targets and predictions that are single real numbers."""
        self._readings: list[Reading] | None = None
        self._number_names: tuple[str, str] | None = None

    def __call__(self, sample: Sample) -> None:
        """Keeps what is needed of a sample."""
        if self._readings is None:
            self._readings = _readings(sample)
            self._number_names = _number_names(sample)
        if self._number_names is not None and len(self.numbers) < SCORED:
            target, output = self._number_names
            self.numbers.append(
                (float(np.asarray(sample.targets[target]).item()), float(np.asarray(sample.outputs[output]).item()))
            )
        read: list[tuple[int, int, float | None]] = []
        for reading in list(self._readings):
            try:
                read.append(reading.add(sample))
            except _ContradictionError:  # a number that happened to lie between 0 and 1
                self._readings.remove(reading)
        self.count += 1
        if len(self.first) < EXAMPLES:
            self.first.append(_example(sample, *(read[0] if read else (None, None, None))))

    @property
    def reading(self) -> Reading | None:
        """What was read as classes, if anything was."""
        return self._readings[0] if self._readings else None

    @property
    def is_classes(self) -> bool:
        return self.reading is not None

    @property
    def errors(self) -> list[Example]:
        """Wrong answers, those first that the model was most certain of."""
        return self.reading.errors if self.reading is not None else []

    @property
    def targets(self) -> list[int]:
        """The target classes of the samples that have scores."""
        return self.reading.targets if self.reading is not None else []

    @property
    def scores(self) -> list[np.ndarray]:
        """The probabilities of all classes, for each sample."""
        return self.reading.scores if self.reading is not None else []

    def confusion(self) -> np.ndarray:
        """The number of samples by target (row) and predicted class (column)."""
        assert self.reading is not None
        size = max(max(pair) for pair in self.reading.pairs) + 1
        if self.scores:
            size = max(size, len(self.scores[0]))
        matrix = np.zeros((size, size), int)
        for (target, predicted), count in self.reading.pairs.items():
            matrix[target, predicted] = count
        return matrix


def right_answers(samples: Sequence[Sample]) -> np.ndarray | None:
    """Whether the class of each sample was predicted right; None if the outputs are not classes."""
    collected = Collected()
    for sample in samples:
        collected(sample)
    reading = collected.reading
    if reading is None:
        return None
    answers = [reading._classes(sample) for sample in samples]
    return np.array([target == predicted for target, _, predicted in answers])


def class_scores(matrix: np.ndarray) -> list[ClassScores]:
    """The scores of each class, from a confusion matrix with targets in rows."""
    found, predicted, support = matrix.diagonal(), matrix.sum(axis=0), matrix.sum(axis=1)
    return [
        ClassScores(_ratio(hit, chosen), _ratio(hit, there), _ratio(2 * hit, chosen + there), int(there))
        for hit, chosen, there in zip(found, predicted, support, strict=True)
    ]


def confusions(matrix: np.ndarray, most: int) -> list[tuple[int, int, int]]:
    """(true class, predicted class, count) of the most frequent errors."""
    wrong = matrix * ~np.eye(len(matrix), dtype=bool)
    pairs = sorted(np.argwhere(wrong).tolist(), key=lambda pair: (-wrong[pair[0], pair[1]], pair))
    return [(target, predicted, int(wrong[target, predicted])) for target, predicted in pairs[:most]]


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


def _readings(sample: Sample) -> list[Reading]:
    """The ways to read classes from samples such as this one, the best first."""
    targets, outputs = _arrays(sample.targets), _arrays(sample.outputs)
    target = next((name for name, value in targets.items() if _is_class(value)), None)
    predicted = next((name for name, value in outputs.items() if _is_class(value)), None)
    if target is not None:
        for name, value in outputs.items():
            if _is_probabilities(value) and int(targets[target].item()) < len(value):
                return [Reading(target, name, None)]
    binary = target or next((name for name, value in targets.items() if _is_binary(value)), None)
    found = []
    if binary is not None and _is_binary(targets[binary]):
        found = [Reading(binary, name, predicted) for name, value in outputs.items() if _is_probability(value)]
    return [*found, Reading(target, None, predicted)] if target is not None and predicted is not None else found


def _number_names(sample: Sample) -> tuple[str, str] | None:
    """The first target that is a number, and the output of the same name, or else the first one that is a real number."""
    targets, outputs = _arrays(sample.targets), _arrays(sample.outputs)
    real = [name for name, value in outputs.items() if value.size == 1 and value.dtype.kind == "f"]
    target = next((name for name, value in targets.items() if value.size == 1 and value.dtype.kind in "iuf"), None)
    return (target, target if target in real else real[0]) if target is not None and real else None


def _arrays(values: Any) -> dict[str, np.ndarray]:
    if not isinstance(values, dict):
        return {}
    return {
        name: np.asarray(value)
        for name, value in values.items()
        if isinstance(value, np.ndarray | np.generic | int | float)
    }


def _is_class(value: np.ndarray) -> bool:
    return value.size == 1 and value.dtype.kind in "iub" and int(value.item()) >= 0


def _is_binary(value: np.ndarray) -> bool:
    return value.size == 1 and value.dtype.kind in "iubf" and value.item() in (0, 1)


def _is_probability(value: np.ndarray) -> bool:
    return value.size == 1 and value.dtype.kind == "f" and 0 <= float(value.item()) <= 1


def _is_probabilities(value: np.ndarray) -> bool:
    return (
        value.ndim == 1 and len(value) > 1 and value.dtype.kind == "f"
        and float(value.min()) >= -1e-6 and abs(float(value.sum()) - 1) < 1e-2
    )  # fmt: skip


def _example(sample: Sample, target: int | None, predicted: int | None, score: float | None) -> Example:
    copy = {
        name: np.array(value) for name, value in _arrays(sample.inputs).items()
    }  # a view would keep its whole batch
    return Example(copy, sample.outputs, sample.targets, sample.meta, target, predicted, score)
