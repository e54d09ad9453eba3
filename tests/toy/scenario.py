"""The toy scenario."""

from typing import Any

from scena import ScenarioBase, TrainValParams

from .params import HalvesParams, ToyScenarioParams


class ToyScenario(ScenarioBase[ToyScenarioParams, TrainValParams[HalvesParams]]):
    """Which half of eight numbers has the larger sum?"""

    def model_kwargs(self, data: Any) -> dict[str, Any]:
        return {"names": data.names()}
