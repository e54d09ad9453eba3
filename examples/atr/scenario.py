"""Line-based text recognition with CNN, LSTM and CTC."""

from typing import TYPE_CHECKING, Any

from scena import DataGeneratorParams, ScenarioBase, TrainerParams
from scena.training.trigger import Trigger

from .params import AtrPipelines, AtrScenarioParams, LineFilesParams

if TYPE_CHECKING:
    from .data import AtrData
    from .evaluator import CharacterErrors


class AtrScenario(ScenarioBase[AtrScenarioParams, AtrPipelines]):
    """Reads lines of text from pictures."""

    @classmethod
    def default_trainer_params(cls) -> TrainerParams[AtrScenarioParams, AtrPipelines]:
        params = super().default_trainer_params()
        params.epochs, params.learning_rate.lr = 12, 0.003
        params.lav_every_n = Trigger(1)
        return params

    @classmethod
    def default_predict_source(cls, pipelines: AtrPipelines) -> DataGeneratorParams:
        return LineFilesParams()

    def graph_kwargs(self, data: "AtrData") -> dict[str, Any]:  # type: ignore[override]
        return {"characters": len(data.characters())}

    @classmethod
    def evaluator_cls(cls) -> "type[CharacterErrors]":
        from .evaluator import CharacterErrors

        return CharacterErrors
