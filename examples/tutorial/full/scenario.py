"""The full tutorial: a choice of networks, processors, an evaluator, and several models that vote."""

from scena import ScenarioBase, TrainValParams

from .params import DigitsParams, ImageFilesParams, TutorialScenarioParams, TutorialVoterParams


class TutorialScenario(ScenarioBase[TutorialScenarioParams, TrainValParams[DigitsParams]]):
    """Recognises handwritten digits with a network that is put together on the command line."""

    predict_source = ImageFilesParams
    voter_params = TutorialVoterParams
