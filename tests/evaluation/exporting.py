"""Exports of models with random weights: all that evaluation and prediction need, without a training."""

from pathlib import Path
from typing import Any

import keras

from scena import ScenarioBase
from tests.toy.scenario import ToyScenario


def export(
    directory: Path, seed: int, scenario: type[ScenarioBase[Any, Any]] = ToyScenario, params: Any = None
) -> Path:
    """Exports a scenario with the weights of this seed and returns the directory."""
    params = params or scenario.default_trainer_params()
    keras.utils.set_random_seed(seed)
    made = scenario(params.scenario)
    made.export(made.build(), directory, params)
    return directory
