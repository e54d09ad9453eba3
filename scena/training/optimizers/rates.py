"""Learning rates of parts of a network: each weight follows the schedule times the factor of the first rule that fits its path."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from scena.training.errors import TrainingError


class RatedByPath:
    """Mixed in front of a Keras optimizer: the learning rate of a weight, and with it its decay, is scaled by its own factor."""

    rules: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()

    def build(self, variables: list[Any]) -> None:
        """Creates the optimizer's state and finds the factor of each weight."""
        optimizer: Any = self
        if optimizer.built:
            return
        super().build(variables)  # type: ignore[misc]
        self._factors = rate_factors(self.rules, [variable.path for variable in variables], self.frozen)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one weight at its own rate."""
        factor = ops.cast(self._factor(variable), learning_rate.dtype)
        super().update_step(gradient, variable, learning_rate * factor)  # type: ignore[misc]

    def _apply_weight_decay(self, variables: list[Any]) -> None:
        optimizer: Any = self
        decay = optimizer.weight_decay
        groups: dict[float, list[Any]] = defaultdict(list)
        for variable in variables:
            groups[self._factor(variable)].append(variable)
        for factor, group in groups.items() if decay is not None else ():
            optimizer.weight_decay = decay * factor  # Keras multiplies it by the rate of the schedule
            super()._apply_weight_decay(group)  # type: ignore[misc]
        optimizer.weight_decay = decay

    def _factor(self, variable: Any) -> float:
        optimizer: Any = self
        return self._factors[optimizer._get_variable_index(variable)]


def rated(base: type[keras.optimizers.Optimizer], rules: list[str], frozen: Sequence[str] = ()) -> type[Any]:
    """The optimizer class with the rules, or itself if there are none."""
    if not rules:
        return base
    return type(base.__name__, (RatedByPath, base), {"rules": tuple(rules), "frozen": tuple(frozen)})


def rate_factors(rules: tuple[str, ...], paths: list[str], frozen: Sequence[str] = ()) -> list[float]:
    """The factor of each path: that of the first rule whose expression is found in it, or 1. A rule may be about what is frozen only."""
    parsed = [(re.compile(rule.rpartition("=")[0]), float(rule.rpartition("=")[2])) for rule in rules]
    for pattern, _ in parsed:
        if not any(pattern.search(path) for path in (*paths, *frozen)):
            there = "\n  ".join(sorted(paths))
            raise TrainingError(
                f"--optimizer.lr_factors {pattern.pattern!r} fits no weight. The weights are:\n  {there}"
            )
    return [next((factor for pattern, factor in parsed if pattern.search(path)), 1.0) for path in paths]
