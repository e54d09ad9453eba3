"""Accuracy by class."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

from scena.data.sample import Sample
from scena.evaluation.evaluator import Evaluator
from scena.scenario.classification.params import ClassificationEvaluatorParams


class ClassificationEvaluator(Evaluator[ClassificationEvaluatorParams]):
    """The mean of the classes' accuracies, for models that must not neglect rare classes."""

    def __init__(self, params: ClassificationEvaluatorParams, names: Sequence[str] = ()) -> None:
        super().__init__(params)
        self._names = list(names)

    def class_names(self) -> list[str]:
        return self._names

    def __enter__(self) -> Self:
        self.seen: Counter[int] = Counter()
        self.right: Counter[int] = Counter()
        return self

    def update_state(self, sample: Sample) -> None:
        label = int(sample.targets["label"])
        self.seen[label] += 1
        self.right[label] += int(sample.outputs["class"] == label)

    def result(self) -> dict[str, Any]:
        return {"balanced_acc": sum(self.right[label] / count for label, count in self.seen.items()) / len(self.seen)}
