"""MNIST in as few lines as an honest scenario takes."""

from scena import Scenario, TrainValParams

from .params import DigitsParams, TutorialDataParams, TutorialModelParams


class TutorialScenario(Scenario[TutorialDataParams, TutorialModelParams, TrainValParams[DigitsParams]]):
    """Recognises handwritten digits with a small convolutional network."""
