"""What holds the parts together."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena import DataError, PipelineMode, ScenarioBase, TrainerParams
from scena.scenario.classification import ImagePathsParams

from .params import FlowersPipelines, FlowersScenarioParams

if TYPE_CHECKING:
    from scena import DataBase, Trainer


class FlowersScenario(ScenarioBase[FlowersScenarioParams, FlowersPipelines]):
    """Tells images apart that lie in a folder for each class, for example photographs of flowers."""

    predict_source = ImagePathsParams

    @classmethod
    def create_trainer(cls, params: TrainerParams[FlowersScenarioParams, FlowersPipelines]) -> "Trainer":
        # the names of the classes are those of the folders; an export keeps them with the other parameters
        images = params.gen.source
        if images == FlowersPipelines().source and not Path("flowers").exists():
            raise DataError(
                "There is no folder 'flowers'. `python -m examples.imageclassification.draw flowers` draws one; or name the "
                "folder of your images: --data.images FOLDER."
            )
        source: Any = params.gen.train_gen().create(PipelineMode.TRAINING)
        params.scenario.data.class_names = list(source.classes)
        return super().create_trainer(params)

    def graph_kwargs(self, data: "DataBase[Any]") -> dict[str, Any]:
        return {"n_classes": len(data.params.class_names)}

    def evaluator_kwargs(self, data: "DataBase[Any]") -> dict[str, Any]:
        return {"names": data.params.class_names}
