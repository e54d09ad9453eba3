"""Line-based text recognition with CNN, LSTM and CTC."""

from typing import TYPE_CHECKING, Any

from scena import CosineDecay, ScenarioBase, TrainerParams, Trigger

from .params import AtrPipelines, AtrScenarioParams, LineFilesParams

if TYPE_CHECKING:
    from .data import AtrData


class AtrScenario(ScenarioBase[AtrScenarioParams, AtrPipelines]):
    """Reads lines of text from images."""

    predict_source = LineFilesParams

    @classmethod
    def default_trainer_params(cls) -> TrainerParams[AtrScenarioParams, AtrPipelines]:
        params = super().default_trainer_params()
        params.epochs, params.samples_per_epoch = 10, 4000  # buckets leave open how many batches there are
        params.learning_rate = CosineDecay(lr=0.003, warmup=Trigger(200, "steps"), alpha=0.01)
        params.lav_every_n, params.val_every_n = Trigger(1), Trigger(0)  # LAV measures the loss too
        return params

    def graph_kwargs(self, data: "AtrData") -> dict[str, Any]:
        return {"characters": len(data.characters())}
