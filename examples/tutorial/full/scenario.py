"""The full tutorial: dynamic graphs, processors, an evaluator, and a predictor in which several models vote."""

from typing import TYPE_CHECKING

from scena import DataGeneratorParams, ScenarioBase, TrainValParams

from .params import DigitsParams, ImageFilesParams, TutorialScenarioParams

if TYPE_CHECKING:
    from .evaluator import TutorialEvaluator
    from .predictor import TutorialVoter


class TutorialScenario(ScenarioBase[TutorialScenarioParams, TrainValParams[DigitsParams]]):
    """Recognises handwritten digits with a network that is put together on the command line."""

    @classmethod
    def default_predict_source(cls, pipelines: TrainValParams[DigitsParams]) -> DataGeneratorParams:
        return ImageFilesParams()

    @classmethod
    def evaluator_cls(cls) -> "type[TutorialEvaluator]":
        from .evaluator import TutorialEvaluator

        return TutorialEvaluator

    @classmethod
    def multi_predictor_cls(cls) -> "type[TutorialVoter]":
        from .predictor import TutorialVoter

        return TutorialVoter
