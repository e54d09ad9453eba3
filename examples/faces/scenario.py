"""Metric learning: embeddings of faces, verified on people who were not trained on."""

from typing import TYPE_CHECKING, Any

from scena import CosineDecay, PipelineMode, ScenarioBase, TrainerParams, Trigger

from .params import FaceFilesParams, FacePipelines, FaceScenarioParams

if TYPE_CHECKING:
    from scena import Trainer

    from .data import FaceData


class FaceScenario(ScenarioBase[FaceScenarioParams, FacePipelines]):
    """Learns what makes two images show the same person."""

    predict_source = FaceFilesParams

    @classmethod
    def default_trainer_params(cls) -> TrainerParams[FaceScenarioParams, FacePipelines]:
        params = super().default_trainer_params()
        params.epochs, params.lav_every_n = 12, Trigger(1)
        params.learning_rate = CosineDecay(lr=0.003)
        return params

    @classmethod
    def create_trainer(cls, params: TrainerParams[FaceScenarioParams, FacePipelines]) -> "Trainer":
        """A trainer whose head knows as many people as there are to train on."""
        source: Any = params.gen.train_gen().create(PipelineMode.TRAINING)
        params.scenario.model.people = params.scenario.model.people or source.people
        return super().create_trainer(params)

    def graph_kwargs(self, data: "FaceData") -> dict[str, Any]:
        return {"size": data.params.size}
