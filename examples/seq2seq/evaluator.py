"""The share of answers that are right from the first to the last character."""

from typing import Any, Self

from scena import Evaluator, Sample

from .params import DatesEvaluatorParams


class ExactMatch(Evaluator[DatesEvaluatorParams]):
    """Counts exact answers."""

    def __enter__(self) -> Self:
        self.right = self.seen = 0
        return self

    def update_state(self, sample: Sample) -> None:
        self.seen += 1
        self.right += int((sample.outputs["answer"] == sample.targets["answer"]).all())

    def result(self) -> dict[str, Any]:
        return {"exact": self.right / self.seen}
