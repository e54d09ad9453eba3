"""Metric learning: embeddings of faces, verified on people who were not trained on."""

from typing import TYPE_CHECKING, Any

from scena import DataGeneratorParams, PipelineMode, ScenarioBase, TrainerParams
from scena.training.schedules.params import CosineDecay
from scena.training.trigger import Trigger

from .params import FaceFilesParams, FacePipelines, FaceScenarioParams

if TYPE_CHECKING:
    from scena import Trainer

    from .data import FaceData
    from .evaluator import FaceEvaluator


class FaceScenario(ScenarioBase[FaceScenarioParams, FacePipelines]):
    """Learns what makes two pictures show the same person."""

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

    @classmethod
    def default_predict_source(cls, pipelines: FacePipelines) -> DataGeneratorParams:
        return FaceFilesParams()

    def graph_kwargs(self, data: "FaceData") -> dict[str, Any]:  # type: ignore[override]
        return {"size": data.params.size}

    @classmethod
    def evaluator_cls(cls) -> "type[FaceEvaluator]":
        from .evaluator import FaceEvaluator

        return FaceEvaluator
