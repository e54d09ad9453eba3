"""What LAV shows beside loss and accuracy: the class that is recognised worst, and names in the report."""

from collections import Counter
from typing import Any, Self

from scena import Evaluator, EvaluatorParams, Sample


class FlowersEvaluator(Evaluator[EvaluatorParams]):
    """Accuracy of the worst class."""

    def __init__(self, params: EvaluatorParams, names: list[str]) -> None:
        super().__init__(params)
        self.names = names

    def class_names(self) -> list[str]:
        return self.names

    def __enter__(self) -> Self:
        self.seen: Counter[int] = Counter()
        self.right: Counter[int] = Counter()
        return self

    def update_state(self, sample: Sample) -> None:
        label = int(sample.targets["label"])
        self.seen[label] += 1
        self.right[label] += int(sample.outputs["class"] == label)

    def result(self) -> dict[str, Any]:
        return {"worst_acc": min(self.right[label] / count for label, count in self.seen.items())}
