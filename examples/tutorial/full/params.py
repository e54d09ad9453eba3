"""What can be set, from the data to the network. Pure Python: `scena train examples.tutorial.full --help` needs nothing else."""

from pathlib import Path
from typing import Literal

import scena
from scena import Params, PipelineMode, param


class DigitsParams(scena.DataGeneratorParams, builds=".data:Digits"):
    """A data set of images with ten classes, for training and validation."""

    dataset: str = param("digits", choices=["digits", "mnist", "fashion_mnist"], help="digits needs no network")


class ImageFilesParams(scena.DataGeneratorParams, builds=".data:ImageFiles"):
    """Image files of any size, for prediction."""

    image_files: list[Path] = param(required=True, help="the images to predict")


class LoadImageParams(scena.DataProcessorParams, builds=".processors:LoadImage"):
    """Reads an image file: gray, 28 × 28, a light digit on a dark background."""

    modes = {PipelineMode.PREDICTION}
    invert: bool = param(False, help="the files show dark digits on a light background")


class ShiftParams(scena.DataProcessorParams, builds=".processors:Shift"):
    """Data augmentation: moves the image by a few pixels at random."""

    modes = {PipelineMode.TRAINING}
    pixels: int = param(2, ge=0, le=14, help="largest shift in each direction")


class TutorialDataParams(scena.DataBaseParams, builds=".data:TutorialData"):
    """Images of 28 × 28 pixels and their class."""

    pre_proc = scena.SequentialProcessorPipelineParams(processors=[LoadImageParams(), ShiftParams()])


class BackboneParams(Params, abstract=True):
    """What turns the image into features; choose one with --model.graph."""


class MLP(BackboneParams, builds=".graphs:MultiLayerPerceptron"):
    """Dense layers on the flattened image."""

    nodes: list[int] = param([200, 100], help="units of each layer")
    activation: Literal["relu", "tanh", "gelu"] = param("relu", help="activation of each layer")


class CNN(BackboneParams, builds=".graphs:ConvolutionalNetwork"):
    """Convolutions, each followed by pooling, and a dense layer."""

    filters: list[int] = param([40, 20], help="filters of each convolution")
    dense: int = param(100, ge=1, help="units of the dense layer after them")


class TutorialModelParams(scena.ModelBaseParams, builds=".model:TutorialModel"):
    """A network that tells ten classes apart."""

    n_classes: int = param(10, ge=2, help="number of classes")
    graph: BackboneParams = param(CNN(), help="what turns the image into features")


class TutorialEvaluatorParams(scena.EvaluatorParams, builds=".evaluator:TutorialEvaluator"):
    """Accuracy by class, in Python."""

    worst: bool = param(True, help="also show the accuracy of the worst class")


class TutorialVoterParams(scena.VoterParams, builds=".voter:TutorialVoter"):
    """Several models vote by their probabilities."""


class TutorialScenarioParams(scena.ScenarioBaseParams[TutorialDataParams, TutorialModelParams]):
    """Recognising small images."""

    evaluator: TutorialEvaluatorParams = param(flat=True, help="accuracy by class")
