"""Dates as people write them to YYYY-MM-DD: a graph that differs between training and prediction."""

from typing import TYPE_CHECKING

from scena import DataGeneratorParams, ScenarioBase, TrainerParams, TrainValParams
from scena.training.trigger import Trigger

from .params import DatesParams, DatesScenarioParams, TextsParams

if TYPE_CHECKING:
    from .evaluator import ExactMatch


class DatesScenario(ScenarioBase[DatesScenarioParams, TrainValParams[DatesParams]]):
    """Reads dates in many forms and writes them as YYYY-MM-DD."""

    @classmethod
    def default_trainer_params(cls) -> TrainerParams[DatesScenarioParams, TrainValParams[DatesParams]]:
        params = super().default_trainer_params()
        params.epochs, params.learning_rate.lr = 6, 0.003
        params.lav_every_n = Trigger(1)
        params.gen.train.batch_size, params.gen.val.batch_size = 64, 200
        return params

    @classmethod
    def default_predict_source(cls, pipelines: TrainValParams[DatesParams]) -> DataGeneratorParams:
        return TextsParams()

    @classmethod
    def evaluator_cls(cls) -> "type[ExactMatch]":
        from .evaluator import ExactMatch

        return ExactMatch
