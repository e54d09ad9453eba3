"""What can be set. Pure Python: `scena train examples.imageclassification --help` needs nothing else."""

from scena import (
    ImageFilesParams,
    ImagePipelines,
    Location,
    ModelBaseParams,
    ScenarioBaseParams,
    SplitSourceParams,
    param,
)
from scena.data.image import (
    ColorJitterParams,
    ImageDataParams,
    ImagePipelineParams,
    RandomHorizontalFlipParams,
    RandomRotateParams,
    TranslateParams,
)
from scena.scenario.classification import ClassificationEvaluatorParams


class FlowersPipelines(ImagePipelines):
    """A folder for each class; the images of the training are changed at random, those of the validation are not."""

    train: ImagePipelineParams = param(
        ImagePipelineParams(
            batch_size=32,
            augment=[
                RandomHorizontalFlipParams(),
                RandomRotateParams(angle=20),
                TranslateParams(),
                ColorJitterParams(hue=0.0),
            ],
        ),
        flat=True,
        help="how training batches are made",
    )
    source: SplitSourceParams = param(
        ImageFilesParams(images=Location("flowers")),
        flat="data",
        help="the images, for example ImageFiles or ImageRecords",
    )


class FlowersDataParams(ImageDataParams, builds=".data:FlowersData"):
    """Images of one size and their class."""

    image_shape: list[int] = param([64, 64, 3], ge=1, help="height, width and channels (3 or 1) the network sees")
    class_names: list[str] = param([], hidden=True, help="the names of the classes, found in the folder")


class FlowersModelParams(ModelBaseParams, builds=".model:FlowersModel"):
    """Convolutions, each followed by pooling, then dense layers."""

    filters: list[int] = param([16, 32, 64], gt=0, help="filters of each convolution")
    dense: list[int] = param([128], gt=0, help="units of each dense layer before the classes")
    dropout: float = param(0.2, ge=0, lt=1, help="share of the features that is dropped in training")


class FlowersEvaluatorParams(ClassificationEvaluatorParams, builds=".evaluator:FlowersEvaluator"):
    """Accuracy by class, and of the worst one."""


class FlowersScenarioParams(ScenarioBaseParams[FlowersDataParams, FlowersModelParams]):
    """Telling images apart."""

    evaluator: ClassificationEvaluatorParams = param(FlowersEvaluatorParams(), flat=True, help="accuracy by class")
