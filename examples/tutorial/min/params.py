"""What can be set. Pure Python, so that `scena train examples.tutorial.min --help` is there at once."""

from scena import DataBaseParams, DataGeneratorParams, ModelBaseParams, ScenarioBaseParams, param


class DigitsParams(DataGeneratorParams, builds=".data:Digits"):
    """Pictures of digits."""

    dataset: str = param("digits", choices=["digits", "mnist", "fashion_mnist"], help="digits needs no network")


class TutorialDataParams(DataBaseParams, builds=".data:TutorialData"):
    """A picture in, a digit out."""


class TutorialModelParams(ModelBaseParams, builds=".model:TutorialModel"):
    """A small convolutional network."""

    n_classes: int = param(10, ge=2, help="number of classes")


class TutorialScenarioParams(ScenarioBaseParams[TutorialDataParams, TutorialModelParams]):
    """Recognising digits."""
