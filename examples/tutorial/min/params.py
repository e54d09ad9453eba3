"""What can be set. Pure Python, so that `scena train examples.tutorial.min --help` appears at once."""

from scena import DataBaseParams, DataGeneratorParams, ModelBaseParams, param


class DigitsParams(DataGeneratorParams, builds=".data:Digits"):
    """Images of digits."""

    dataset: str = param("digits", choices=["digits", "mnist", "fashion_mnist"], help="digits needs no network")


class TutorialDataParams(DataBaseParams, builds=".data:TutorialData"):
    """An image in, a digit out."""


class TutorialModelParams(ModelBaseParams, builds=".model:TutorialModel"):
    """A small convolutional network."""

    n_classes: int = param(10, ge=2, help="number of classes")
