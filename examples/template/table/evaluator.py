"""Measures in plain Python on post-processed samples, and the names of the classes for reports and services."""

from scena import Evaluator

from .params import TemplateEvaluatorParams


class TemplateEvaluator(Evaluator[TemplateEvaluatorParams]):
    """Knows the classes. [Add `update_state` and `result` for a measure of your own.]"""

    def __init__(self, params: TemplateEvaluatorParams, classes: list[str]) -> None:
        super().__init__(params)
        self.classes = classes

    def class_names(self) -> list[str]:
        return self.classes
