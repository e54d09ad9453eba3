"""Parameters of image classification. No Keras here."""

from pathlib import Path

from scena.data.image.augment.params import ImageDataParams, ImagePipelineParams, NormalizeParams
from scena.data.params import DataGeneratorParams
from scena.evaluation.params import EvaluatorParams
from scena.model.params import ModelBaseParams
from scena.model.zoo.catalogue import MODELS
from scena.model.zoo.params import NetworkParams
from scena.params import Params, param
from scena.scenario.params import ScenarioBaseParams
from scena.training.image_pipelines import ImagePipelines


class PictureFilesParams(DataGeneratorParams, builds=".prediction:PictureFiles"):
    """Picture files without a class, for prediction."""

    image_files: list[Path] = param(required=True, help="the pictures to classify")


class ClassificationDataParams(ImageDataParams, builds=".data:ClassificationData"):
    """Pictures of one size and their class."""

    image_shape: list[int] = param([224, 224, 3], hidden=True, help="the model's input size")
    class_names: list[str] = param([], hidden=True, help="the names of the classes, from the data set")


class MixParams(Params):
    """Mixing pictures of a batch in training, and their classes with them."""

    mixup: float = param(0.0, ge=0, help="mixup: alpha of the Beta distribution of the shares (0: off)")
    cutmix: float = param(0.0, ge=0, help="cutmix: alpha of the Beta distribution of the areas (0: off)")

    def __post_init__(self) -> None:
        if self.mixup and self.cutmix:
            raise ValueError("choose mixup or cutmix: a picture is mixed in one way only")


class ClassificationNetworkParams(NetworkParams):
    """A network of the zoo."""

    name: str = param("ResNet20CIFAR", choices=list(MODELS), help="the network; `scena zoo` lists them")
    input_size: list[int] = param([32, 32, 3], gt=0, help="height, width and channels of the pictures")
    num_classes: int = param(0, ge=0, help="number of classes (0: those of the data set)")


class ClassificationModelParams(ModelBaseParams, builds=".model:ClassificationModel"):
    """A network of the zoo, and how its classes are learned."""

    network: ClassificationNetworkParams = param(inline=True, help="the network")
    label_smoothing: float = param(0.0, ge=0, lt=1, help="share of certainty that is spread over all classes")
    class_weights: list[float] = param([], help="how much each class counts in the loss (default: all the same)")
    top_k: list[int] = param([5], help="also measure how often the class is among the k most likely")
    mix: MixParams = param(inline=True, help="mixing pictures in training")


class ClassificationEvaluatorParams(EvaluatorParams):
    """Accuracy by class."""


class ClassificationScenarioParams(ScenarioBaseParams[ClassificationDataParams, ClassificationModelParams]):
    """Image classification."""

    evaluator: ClassificationEvaluatorParams = param(flat=True, help="accuracy by class")

    def __post_init__(self) -> None:
        self.data.image_shape = list(self.model.network.input_size)


class ClassificationPipelines(ImagePipelines):
    """Pictures by the name of a data set, in folders or as records; they are normalised unless something else is said."""

    train: ImagePipelineParams = param(
        ImagePipelineParams(augment=[NormalizeParams()]), flat=True, help="how training batches are made"
    )
    val: ImagePipelineParams = param(
        ImagePipelineParams(augment=[NormalizeParams()]), flat=True, help="how validation batches are made"
    )
