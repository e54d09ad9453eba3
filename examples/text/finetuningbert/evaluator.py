"""F1 of the pairs that say the same, the usual measure of MRPC beside the accuracy."""

from typing import Any, Self

from scena import Evaluator, Sample

from .params import PairEvaluatorParams


class PairScores(Evaluator[PairEvaluatorParams]):
    """Counts what was said and what is true."""

    def __enter__(self) -> Self:
        self.found = self.said = self.true = 0
        return self

    def update_state(self, sample: Sample) -> None:
        said, true = bool(sample.outputs["same"] > 0.5), bool(sample.targets["same"])
        self.found += said and true
        self.said += said
        self.true += true

    def result(self) -> dict[str, Any]:
        return {"f1": 2 * self.found / max(1, self.said + self.true)}
