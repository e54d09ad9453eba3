"""What a report keeps of the samples of one validation: classes and scores, and a few examples with their inputs."""

import heapq
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


class Collected:
    """Called with each sample; finds out by itself whether the outputs are classes.

    They are if there is a target that is a single whole number, and an output that is a vector of probabilities, or a single whole
    number.
    """

    def __init__(self) -> None:
        self.count = 0
        self.pairs: dict[tuple[int, int], int] = {}
        """How often each (target, predicted) class was met."""
        self.targets: list[int] = []
        self.scores: list[np.ndarray] = []
        self.first: list[Example] = []
        self._wrong: list[tuple[float, int, Example]] = []
        self._keys: tuple[str | None, str | None, str | None] | None = None

    def __call__(self, sample: Sample) -> None:
        """Keeps what is needed of a sample."""
        self.count += 1
        target, scores, predicted = self._classes(sample)
        score = float(scores[predicted]) if scores is not None and predicted is not None else None
        if len(self.first) < EXAMPLES:
            self.first.append(_example(sample, target, predicted, score))
        if target is None or predicted is None:
            return
        self.pairs[target, predicted] = self.pairs.get((target, predicted), 0) + 1
        if scores is not None and len(self.targets) < SCORED:
            self.targets.append(target)
            self.scores.append(np.asarray(scores, "float32"))
        if target != predicted:
            entry = (score or 0.0, -self.count, _example(sample, target, predicted, score))
            if len(self._wrong) < EXAMPLES:
                heapq.heappush(self._wrong, entry)
            elif entry[:2] > self._wrong[0][:2]:
                heapq.heapreplace(self._wrong, entry)

    @property
    def is_classes(self) -> bool:
        """Whether targets and outputs are classes."""
        return bool(self.pairs)

    @property
    def errors(self) -> list[Example]:
        """Wrong answers, those first that the model was most certain of."""
        return [example for _, _, example in sorted(self._wrong, key=lambda entry: entry[:2], reverse=True)]

    def confusion(self) -> np.ndarray:
        """The number of samples by target (row) and predicted class (column)."""
        size = max(max(pair) for pair in self.pairs) + 1
        if self.scores:
            size = max(size, len(self.scores[0]))
        matrix = np.zeros((size, size), int)
        for (target, predicted), count in self.pairs.items():
            matrix[target, predicted] = count
        return matrix

    def _classes(self, sample: Sample) -> tuple[int | None, np.ndarray | None, int | None]:
        if self._keys is None:
            self._keys = _find_keys(sample)
        target_key, scores_key, class_key = self._keys
        if target_key is None:
            return None, None, None
        target = int(np.asarray(sample.targets[target_key]))
        if scores_key is not None:
            scores = np.asarray(sample.outputs[scores_key])
            return target, scores, int(scores.argmax())
        return target, None, int(np.asarray(sample.outputs[class_key]))


def _find_keys(sample: Sample) -> tuple[str | None, str | None, str | None]:
    """The names of the target class, the scores and the predicted class, where there are such things."""
    targets, outputs = _arrays(sample.targets), _arrays(sample.outputs)
    target = next((name for name, value in targets.items() if _is_class(value)), None)
    scores = next((name for name, value in outputs.items() if _is_probabilities(value)), None)
    if scores is not None and target is not None and int(targets[target]) >= len(outputs[scores]):
        scores = None
    predicted = next((name for name, value in outputs.items() if _is_class(value)), None)
    return (target, scores, predicted) if scores or predicted else (None, None, None)


def _arrays(values: Any) -> dict[str, np.ndarray]:
    if not isinstance(values, dict):
        return {}
    return {
        name: np.asarray(value) for name, value in values.items() if isinstance(value, np.ndarray | np.generic | int)
    }


def _is_class(value: np.ndarray) -> bool:
    return value.shape == () and value.dtype.kind in "iu" and int(value) >= 0


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
