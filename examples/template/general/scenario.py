"""What holds the parts together; `scena train` is given this."""

from typing import TYPE_CHECKING

from scena import ScenarioBase, TrainValParams

from .params import TemplateScenarioParams, TemplateSourceParams

if TYPE_CHECKING:
    from .evaluator import TemplateEvaluator


class TemplateScenario(ScenarioBase[TemplateScenarioParams, TrainValParams[TemplateSourceParams]]):
    """Tells two rings of points apart. [Say here what your scenario does; --help shows it.]"""

    @classmethod
    def evaluator_cls(cls) -> "type[TemplateEvaluator]":
        from .evaluator import TemplateEvaluator

        return TemplateEvaluator
