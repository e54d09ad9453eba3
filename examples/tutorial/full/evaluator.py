"""Measures in plain Python on post-processed samples."""

from collections import Counter
from typing import Any, Self

from scena import Evaluator, Sample

from .params import TutorialEvaluatorParams


class TutorialEvaluator(Evaluator[TutorialEvaluatorParams]):
    """The accuracy over all samples, and that of the worst class."""

    def __init__(self, params: TutorialEvaluatorParams) -> None:
        super().__init__(params)
        self.seen: Counter[int] = Counter()
        self.right: Counter[int] = Counter()

    def __enter__(self) -> Self:
        self.seen.clear()
        self.right.clear()
        return self

    def update_state(self, sample: Sample) -> None:
        target = int(sample.targets["gt"])
        self.seen[target] += 1
        self.right[target] += int(sample.outputs["class"] == target)

    def result(self) -> dict[str, Any]:
        results = {"eval_acc": self.right.total() / self.seen.total()}
        if self.params.worst:
            results["worst_class_acc"] = min(self.right[label] / count for label, count in self.seen.items())
        return results
