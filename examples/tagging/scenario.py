"""Dates, amounts and names in lines of text: a tag for each letter of lines of any length."""

from scena import ScenarioBase, TrainerParams, TrainValParams, Trigger

from .params import LinesParams, TaggingScenarioParams, TextsParams


class TaggingScenario(ScenarioBase[TaggingScenarioParams, TrainValParams[LinesParams]]):
    """Finds dates, amounts and names in lines of text."""

    predict_source = TextsParams

    @classmethod
    def default_trainer_params(cls) -> TrainerParams[TaggingScenarioParams, TrainValParams[LinesParams]]:
        params = super().default_trainer_params()
        params.epochs, params.learning_rate.lr = 4, 0.01
        params.lav_every_n = Trigger(1)
        # lines of similar length share a batch, so that little is padded
        params.gen.train.bucket_boundaries, params.gen.train.bucket_batch_sizes = [20, 40], [64, 48, 32]
        params.gen.val.batch_size = 100
        return params
