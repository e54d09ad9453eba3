"""What LAV shows beside loss and accuracy."""

from typing import Any

from scena.scenario.classification import ClassificationEvaluator


class FlowersEvaluator(ClassificationEvaluator):
    """Adds the accuracy of the worst class. The class it extends counts by class, and has the names for the report."""

    def result(self) -> dict[str, Any]:
        worst = min(self.right[label] / count for label, count in self.seen.items())
        return {**super().result(), "worst_acc": worst}
