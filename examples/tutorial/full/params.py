"""What can be set, from the data to the network. Pure Python: `scena train examples.tutorial.full --help` needs nothing else."""

from enum import StrEnum
from pathlib import Path

from scena import (
    DataBaseParams,
    DataGeneratorParams,
    DataProcessorParams,
    EvaluatorParams,
    ModelBaseParams,
    Params,
    PipelineMode,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    param,
)
from scena.data.params import DataProcessorPipelineParams


class DigitsParams(DataGeneratorParams, builds=".data:Digits"):
    """A data set of pictures with ten classes, for training and validation."""

    dataset: str = param("digits", choices=["digits", "mnist", "fashion_mnist"], help="digits needs no network")


class ImageFilesParams(DataGeneratorParams, builds=".data:ImageFiles"):
    """Picture files of any size, for prediction."""

    image_files: list[Path] = param(required=True, help="the pictures to predict")


class LoadImageParams(DataProcessorParams, builds=".processors:LoadImage"):
    """Reads a picture file: grey, 28 × 28, a light digit on a dark ground."""

    modes: set[PipelineMode] = param({PipelineMode.PREDICTION}, help="modes in which the processor is applied")
    invert: bool = param(False, help="the files show dark digits on a light ground")


class ShiftParams(DataProcessorParams, builds=".processors:Shift"):
    """Data augmentation: moves the picture by a few pixels at random."""

    modes: set[PipelineMode] = param({PipelineMode.TRAINING}, help="modes in which the processor is applied")
    pixels: int = param(2, ge=0, le=14, help="at most so far in each direction")


class TutorialDataParams(DataBaseParams, builds=".data:TutorialData"):
    """Pictures of 28 × 28 pixels and their class."""

    pre_proc: DataProcessorPipelineParams = param(
        SequentialProcessorPipelineParams(processors=[LoadImageParams(), ShiftParams()]),
        help="processors before the model",
    )


class Activation(StrEnum):
    """The activation functions to choose from."""

    RELU = "relu"
    TANH = "tanh"
    GELU = "gelu"


class BackendParams(Params, abstract=True):
    """What turns the picture into features; choose one with --model.graph."""


class MLP(BackendParams, builds=".graphs:MultiLayerPerceptron"):
    """Dense layers on the flattened picture."""

    nodes: list[int] = param([200, 100], help="units of each layer")
    activation: Activation = param(Activation.RELU, help="activation of each layer")


class CNN(BackendParams, builds=".graphs:ConvolutionalNetwork"):
    """Convolutions, each followed by pooling, and a dense layer."""

    filters: list[int] = param([40, 20], help="filters of each convolution")
    dense: int = param(100, ge=1, help="units of the dense layer after them")


class TutorialModelParams(ModelBaseParams, builds=".model:TutorialModel"):
    """A network that tells ten classes apart."""

    n_classes: int = param(10, ge=2, help="number of classes")
    graph: BackendParams = param(CNN(), help="what turns the picture into features")


class TutorialEvaluatorParams(EvaluatorParams):
    """Accuracy by class, in Python."""

    worst: bool = param(True, help="also show the accuracy of the worst class")


class TutorialScenarioParams(ScenarioBaseParams[TutorialDataParams, TutorialModelParams]):
    """Recognising small pictures."""

    evaluator: TutorialEvaluatorParams = param(flat=True, help="accuracy by class")
