"""Accuracy by class."""

from collections import Counter
from typing import Any, Self

from scena.data.sample import Sample
from scena.evaluation.evaluator import Evaluator
from scena.scenario.classification.params import ClassificationEvaluatorParams


class ClassificationEvaluator(Evaluator[ClassificationEvaluatorParams]):
    """The mean of the classes' accuracies: what a model is worth that must not neglect rare classes."""

    def __enter__(self) -> Self:
        self.seen: Counter[int] = Counter()
        self.right: Counter[int] = Counter()
        return self

    def update_state(self, sample: Sample) -> None:
        """Counts one sample for its class."""
        label = int(sample.targets["label"])
        self.seen[label] += 1
        self.right[label] += int(sample.outputs["class"] == label)

    def result(self) -> dict[str, Any]:
        """The balanced accuracy."""
        return {"balanced_acc": sum(self.right[label] / count for label, count in self.seen.items()) / len(self.seen)}
