"""Measures in plain Python on post-processed samples. [Remove this file, and its lines in params.py, if you need none.]"""

from typing import Any, Self

from scena import Evaluator, Sample

from .params import TemplateEvaluatorParams


class TemplateEvaluator(Evaluator[TemplateEvaluatorParams]):
    """Counts mistakes."""

    def __enter__(self) -> Self:
        self.mistakes = 0
        return self

    def update_state(self, sample: Sample) -> None:
        self.mistakes += int(sample.outputs["class"] != sample.targets["label"])

    def result(self) -> dict[str, Any]:
        return {"mistakes": self.mistakes}
