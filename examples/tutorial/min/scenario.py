"""MNIST in as few lines as an honest scenario takes."""

from scena import ScenarioBase, TrainValParams

from .params import DigitsParams, TutorialScenarioParams


class TutorialScenario(ScenarioBase[TutorialScenarioParams, TrainValParams[DigitsParams]]):
    """Recognises handwritten digits with a small convolutional network."""
