"""The scenario that is killed."""

from scena import ScenarioBase, TrainValParams

from .params import SurvivorScenarioParams, WavesParams


class SurvivorScenario(ScenarioBase[SurvivorScenarioParams, TrainValParams[WavesParams]]):
    """Survives every kill."""
