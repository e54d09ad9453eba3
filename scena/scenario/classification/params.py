"""Parameters of image classification. No Keras here."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.data.image.params import ImageDataParams, ImagePipelineParams, NormalizeParams
from scena.data.params import DataGeneratorParams
from scena.data.resource import Resource
from scena.evaluation.params import EvaluatorParams
from scena.model.params import ModelBaseParams
from scena.model.zoo.catalogue import MODELS
from scena.model.zoo.params import NetworkParams
from scena.params import Params, param
from scena.scenario.params import ScenarioBaseParams
from scena.training.pipelines import ImagePipelines

if TYPE_CHECKING:  # --help loads no numpy
    from scena.data.database import DataBase
    from scena.data.pipeline import DataPipeline


class ImagePathsParams(DataGeneratorParams, builds=".data:ImagePaths"):
    """Image files without a class, for prediction."""

    image_files: list[Path] = param(required=True, help="the images to classify")


class ClassificationDataParams(ImageDataParams, builds=".data:ClassificationData"):
    """Images of one size and their class."""

    image_shape: list[int] = param([224, 224, 3], hidden=True, help="the model's input size")
    any_size: bool = param(False, hidden=True, help="whether the first epochs have smaller images")
    class_names: list[str] = param([], hidden=True, help="the names of the classes, from the data set")


class MixParams(Params):
    """Mixing images of a batch in training, and their classes with them."""

    mixup: float = param(0.0, ge=0, help="mixup: alpha of the Beta distribution of the shares (0: off)")
    cutmix: float = param(0.0, ge=0, help="cutmix: alpha of the Beta distribution of the areas (0: off)")

    def __post_init__(self) -> None:
        if self.mixup and self.cutmix:
            raise ValueError("choose mixup or cutmix: an image is mixed in one way only")


HUB = "hub"


class ClassificationNetworkParams(NetworkParams):
    """A network of the zoo, or a classifier on the features of a SavedModel."""

    name: str = param(
        "ResNet20CIFAR",
        choices=[*MODELS, HUB],
        help="the network; `scena zoo` lists them; hub: the SavedModel of --model.handle and a dense layer",
    )
    input_size: list[int] = param([32, 32, 3], gt=0, help="height, width and channels of the images")
    num_classes: int = param(0, ge=0, help="number of classes (0: those of the data set)")
    weights: str | None = param(
        None,
        help="first weights of the network: imagenet (those of keras.applications, downloaded by Keras), or a file: "
        ".keras, .weights.h5, or .h5 of keras.applications; a classifier for other classes is skipped",
    )
    handle: str | None = param(
        None,
        help="hub: the feature extractor, a folder with a SavedModel or an address of TensorFlow Hub (extra 'hub')",
    )
    max_momentum: float = param(
        0.0,
        ge=0,
        le=1,
        hidden=True,
        help="the largest momentum of batch normalization (0: set by the number of steps in an epoch)",
    )
    files: Resource | None = param(None, hidden=True, help="the extractor's folder, which travels with the export")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.input_size[2] not in (1, 3):
            raise ValueError(f"input_size must have 1 or 3 channels. Received: {self.input_size}")
        if self.name == HUB:
            self._check_hub()
        elif self.handle is not None:
            raise ValueError(f"handle belongs to --model.name hub. Received: {self.name} and {self.handle!r}")

    def _check_hub(self) -> None:
        if self.handle is None:
            raise ValueError("--model.name hub needs --model.handle: a folder with a SavedModel, or an address")
        for name in ("factor", "framework", "data_format", "depth", "embedding", "variant", "algebra", "weights"):
            if getattr(self, name) != self.default_of(self.__params__[name]):
                raise ValueError(f"{name} is for networks of the zoo; a SavedModel cannot be changed")


class ClassificationModelParams(ModelBaseParams, builds=".model:ClassificationModel"):
    """A network of the zoo, and how its classes are learned."""

    network: ClassificationNetworkParams = param(inline=True, help="the network")
    label_smoothing: float = param(
        0.0, ge=0, lt=1, help="label smoothing: the probability that is spread evenly over all classes"
    )
    class_weights: list[float] = param([], ge=0, help="the weight of each class in the loss (default: equal weights)")
    top_k: list[int] = param([5], ge=1, help="also measure how often the class is among the k most likely")
    mix: MixParams = param(inline=True, help="mixing images in training")


class ClassificationEvaluatorParams(EvaluatorParams, builds=".evaluator:ClassificationEvaluator"):
    """Accuracy by class."""


class ClassificationScenarioParams(ScenarioBaseParams[ClassificationDataParams, ClassificationModelParams]):
    """Image classification."""

    evaluator: ClassificationEvaluatorParams = param(flat=True, help="accuracy by class")

    def __post_init__(self) -> None:
        self.data.image_shape = list(self.model.network.input_size)


class ClassificationTrainParams(ImagePipelineParams):
    """How images become batches; in the first epochs they may be smaller."""

    sizes: list[int] = param(
        [],
        ge=1,
        help="progressive resizing: the longer side of the images in the first stages; then they have the model's size",
    )
    stage_epochs: int = param(1, ge=1, help="epochs of each of these stages")


class ClassificationPipelines(ImagePipelines):
    """Images by the name of a data set, in folders or as records; normalized by default."""

    __spellings__ = "scena.scenario.classification.classification_api:SPELLINGS"

    train: ClassificationTrainParams = param(
        ClassificationTrainParams(augment=[NormalizeParams()]), flat=True, help="how training batches are made"
    )
    val: ImagePipelineParams = param(
        ImagePipelineParams(augment=[NormalizeParams()]), flat=True, help="how validation batches are made"
    )

    def train_data(self, data: "DataBase[Any]", seed: int = 0) -> "DataPipeline":
        """The pipeline of training batches; their images grow from stage to stage."""
        pipeline = super().train_data(data, seed)
        if self.train.sizes:
            from scena.scenario.classification.data import GrowingImages

            pipeline.map_batches(GrowingImages(self.train.sizes, self.train.stage_epochs))
        return pipeline
