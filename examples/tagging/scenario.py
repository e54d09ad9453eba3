"""Dates, amounts and names in lines of text: a tag for each letter of lines of any length."""

from typing import TYPE_CHECKING

from scena import DataGeneratorParams, ScenarioBase, TrainerParams, TrainValParams
from scena.training.trigger import Trigger

from .params import LinesParams, TaggingScenarioParams, TextsParams

if TYPE_CHECKING:
    from .evaluator import Fields


class TaggingScenario(ScenarioBase[TaggingScenarioParams, TrainValParams[LinesParams]]):
    """Finds dates, amounts and names in lines of text."""

    @classmethod
    def default_trainer_params(cls) -> TrainerParams[TaggingScenarioParams, TrainValParams[LinesParams]]:
        params = super().default_trainer_params()
        params.epochs, params.learning_rate.lr = 4, 0.01
        params.lav_every_n = Trigger(1)
        # lines of similar length share a batch, so that little is padded
        params.gen.train.bucket_boundaries, params.gen.train.bucket_batch_sizes = [20, 40], [64, 48, 32]
        params.gen.val.batch_size = 100
        return params

    @classmethod
    def default_predict_source(cls, pipelines: TrainValParams[LinesParams]) -> DataGeneratorParams:
        return TextsParams()

    @classmethod
    def evaluator_cls(cls) -> "type[Fields]":
        from .evaluator import Fields

        return Fields
