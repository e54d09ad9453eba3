"""Dates as people write them to YYYY-MM-DD: a graph that differs between training and prediction."""

from scena import ScenarioBase, TrainerParams, TrainValParams, Trigger

from .params import DatesParams, DatesScenarioParams, TextsParams


class DatesScenario(ScenarioBase[DatesScenarioParams, TrainValParams[DatesParams]]):
    """Reads dates in many forms and writes them as YYYY-MM-DD."""

    predict_source = TextsParams

    @classmethod
    def default_trainer_params(cls) -> TrainerParams[DatesScenarioParams, TrainValParams[DatesParams]]:
        params = super().default_trainer_params()
        params.epochs, params.learning_rate.lr = 6, 0.003
        params.lav_every_n = Trigger(1)
        params.gen.train.batch_size, params.gen.val.batch_size = 64, 200
        return params
