"""Trains two runs for the tables: `a` has one epoch and 4 units, `b` two epochs, 9 units and SGD."""

from pathlib import Path

from scena.training.optimizers.params import SGD
from tests.toy.scenario import ToyScenario


def train(arguments: list[str]) -> None:
    """Trains both in a folder."""
    for name, epochs, units in (("a", 1, 4), ("b", 2, 9)):
        params = ToyScenario.default_trainer_params()
        params.epochs, params.output_dir, params.random_seed = epochs, Path(arguments[0]) / name, 3
        params.scenario.model.units = units
        if name == "b":
            params.optimizer = SGD()
        ToyScenario.create_trainer(params).train()
