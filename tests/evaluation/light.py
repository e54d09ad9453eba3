"""The evaluator of the LAV tests in a module that imports nothing heavy, as a scenario's own module would."""

from typing import Any

from scena.evaluation.evaluator import Evaluator
from tests.toy.scenario import ToyScenario


class Shares(Evaluator[Any]):
    """How often the second class is right, and how often it is said."""

    def __enter__(self) -> "Shares":
        self.said: list[int] = []
        self.right: list[bool] = []
        return self

    def update_state(self, sample: Any) -> None:
        self.said.append(int(sample.outputs["pred"].argmax()))
        self.right.append(bool(self.said[-1] == sample.targets["y"]))

    def result(self) -> dict[str, Any]:
        count = len(self.said)
        return {"said": sum(self.said) / count, "right": sum(self.right) / count}


class LightEvaluated(ToyScenario):
    """The toy scenario with this evaluator."""

    @classmethod
    def evaluator_cls(cls) -> type[Shares]:
        return Shares
