"""What can be set. Pure Python."""

from pathlib import Path

from scena import (
    DataBaseParams,
    DataGeneratorParams,
    DataPipelineParams,
    DataProcessorParams,
    ModelBaseParams,
    Params,
    PipelineMode,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    TrainValParams,
    VerificationParams,
    param,
)
from scena.model.metric_learning import ArcFaceParams, HeadParams


class FaceSourceParams(DataGeneratorParams, abstract=True):
    """Where faces come from. People that are trained on are never validated on."""


class DrawnParams(FaceSourceParams, builds=".data:DrawnFaces"):
    """Faces of made-up people, drawn on the spot."""

    people: int = param(400, ge=2, help="people to train on")
    pictures: int = param(12, ge=2, help="images of each of them")
    new_people: int = param(60, ge=2, help="other people, to validate on")
    new_pictures: int = param(8, ge=2, help="images of each of those")
    drawn_size: int = param(48, ge=16, help="pixels of each side of a drawn image")


class FolderParams(FaceSourceParams, builds=".data:FaceFolder"):
    """Your own images: a folder with a folder of images for each person."""

    folder: Path = param(required=True, help="folder/PERSON/*.png (or jpg)")
    held_out: float = param(0.2, gt=0, lt=1, help="share of the people to validate on; they are not trained on")


class FaceRecordsParams(FaceSourceParams, builds=".data:FaceRecords"):
    """Record files with an image and the number of a person in each record, as `dataset_to_tfrecord` writes them."""

    records: str = param(required=True, help="the folder of record files")
    held_out: float = param(0.2, gt=0, lt=1, help="share of the people to validate on; they are not trained on")


class FaceFilesParams(DataGeneratorParams, builds=".data:FaceFiles"):
    """Images to compare: each with the first one."""

    image_files: list[Path] = param(required=True, help="images; all are compared with the first")


class LoadFaceParams(DataProcessorParams, builds=".processors:LoadFace"):
    """Reads an image file, and scales any image to its size."""


class VaryParams(DataProcessorParams, builds=".processors:Vary"):
    """Data augmentation: mirrors, moves and lights faces at random."""

    modes = {PipelineMode.TRAINING}
    pixels: int = param(3, ge=0, help="moves by at most so many pixels")
    light: float = param(0.2, ge=0, lt=1, help="makes brighter or darker by at most this share")


class FaceDataParams(DataBaseParams, builds=".data:FaceData"):
    """Square images in colour, and the numbers of people."""

    size: int = param(48, ge=16, help="pixels of each side")
    pre_proc = SequentialProcessorPipelineParams(processors=[LoadFaceParams(), VaryParams()])


class EmbedderParams(Params, abstract=True):
    """The network from an image to its embedding."""


class SmallCNN(EmbedderParams):
    """Convolutions, each followed by normalisation and pooling, for small images and small machines."""

    filters: list[int] = param([24, 48, 96, 128], gt=0, help="filters of each convolution; each is followed by pooling")


class IResNet(EmbedderParams):
    """IResNet of the zoo, made for faces of 112 × 112 pixels."""

    layers: int = param(18, choices=[18, 34, 50, 100], help="its number of layers")
    factor: int = param(4, ge=1, help="divides the channels of every layer")


class FaceModelParams(ModelBaseParams, builds=".model:FaceModel"):
    """A network that puts faces of one person close together."""

    network: EmbedderParams = param(SmallCNN(), help="from an image to its embedding")
    embedding: int = param(64, ge=1, help="numbers of an embedding")
    dropout: float = param(0.2, ge=0, lt=1, help="share of features to drop in training, before the embedding")
    head: HeadParams = param(ArcFaceParams(), help="what tells people apart in training")
    people: int = param(0, ge=0, help="people to tell apart in training (0: as many as the training data has)")


class FaceEvaluatorParams(VerificationParams, builds=".evaluator:FaceEvaluator"):
    """Verification of people who were not trained on."""

    hardest: int = param(6, ge=0, help="how many of the most and least alike pairs the report shows")


class FaceScenarioParams(ScenarioBaseParams[FaceDataParams, FaceModelParams]):
    """Recognising faces."""

    evaluator: FaceEvaluatorParams = param(flat=True, help="verification")


class FacePipelines(TrainValParams[FaceSourceParams]):
    """One source, which keeps people to validate on."""

    train: DataPipelineParams = param(
        DataPipelineParams(batch_size=64, preload=True), flat=True, help="how training batches are made"
    )
    val: DataPipelineParams = param(
        DataPipelineParams(batch_size=96, preload=True), flat=True, help="how validation batches are made"
    )
    train_val: FaceSourceParams = param(DrawnParams(), flat="data", help="the faces")
