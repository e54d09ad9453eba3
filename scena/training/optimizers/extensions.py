"""What happens to a weight after an optimizer has changed it: its moving average, and Lookahead.

Extensions keep their state in variables of the optimizer. So checkpoints hold it, a model's own `train_step` gets it, it counts
updates of the weights and not the batches that are accumulated for one, and a step that loss scaling skips is skipped here too.
"""

from typing import Any, Protocol

import keras
from keras import ops


class Extension(Protocol):
    """Something that follows each update of a weight."""

    def build(self, optimizer: Any, variables: list[Any]) -> None:
        """Creates its state, one variable for each weight."""

    def after_update(self, optimizer: Any, index: int, variable: Any) -> None:
        """Called when the optimizer has changed a weight."""


class MovingAverage:
    """The exponential moving average of the weights: average = decay · average + (1 - decay) · weight.

    Args:
        decay: the rate.
        ramp: start with a shorter memory, min(decay, (1 + n) / (10 + n)) at update n, so that the first weights are forgotten.
    """

    def __init__(self, decay: float, ramp: bool = False) -> None:
        self.decay = decay
        self.ramp = ramp
        self.averages: list[Any] = []

    def build(self, optimizer: Any, variables: list[Any]) -> None:
        """Starts from the weights as they are."""
        self.averages = _copies(optimizer, variables, "average")

    def after_update(self, optimizer: Any, index: int, variable: Any) -> None:
        """Moves the average of one weight."""
        average = self.averages[index]
        decay: Any = ops.cast(self.decay, variable.dtype)
        if self.ramp:
            count = ops.cast(optimizer.iterations, variable.dtype)
            decay = ops.minimum(decay, (1 + count) / (10 + count))
        optimizer.assign(average, decay * average + (1 - decay) * variable)


class LookaheadSteps:
    """Every `period` updates the slow weights go a share of the way to the fast ones, which go on from there.

    Args:
        period: updates between two steps of the slow weights.
        step_size: the share of the way.
    """

    def __init__(self, period: int, step_size: float) -> None:
        self.period = period
        self.step_size = step_size
        self.slow: list[Any] = []

    def build(self, optimizer: Any, variables: list[Any]) -> None:
        """Starts from the weights as they are."""
        self.slow = _copies(optimizer, variables, "slow")

    def after_update(self, optimizer: Any, index: int, variable: Any) -> None:
        """Moves the slow copy of one weight, if it is time."""
        slow = self.slow[index]
        due = ops.equal((optimizer.iterations + 1) % self.period, 0)
        moved = slow + ops.cast(self.step_size, variable.dtype) * (variable - slow)
        optimizer.assign(slow, ops.where(due, moved, slow))
        optimizer.assign(variable, ops.where(due, moved, variable))


class Extended:
    """Mixed in front of a Keras optimizer: runs extensions after each update of a weight."""

    extensions: tuple[Extension, ...] = ()

    def build(self, variables: list[Any]) -> None:
        """Creates the optimizer's state and that of the extensions."""
        optimizer: Any = self
        if optimizer.built:
            return
        super().build(variables)  # type: ignore[misc]
        for extension in self.extensions:
            extension.build(optimizer, variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one weight and lets the extensions follow."""
        optimizer: Any = self
        super().update_step(gradient, variable, learning_rate)  # type: ignore[misc]
        index = optimizer._get_variable_index(variable)
        constraint = optimizer._trainable_variables[index].constraint
        if constraint is not None and self.extensions:  # Keras applies it later, but an average has to see it
            optimizer.assign(variable, constraint(ops.convert_to_tensor(variable)))
        for extension in self.extensions:
            extension.after_update(optimizer, index, variable)


def extended(base: type[keras.optimizers.Optimizer], extensions: list[Extension]) -> type[Any]:
    """The optimizer class with extensions, or itself if there are none."""
    if not extensions:
        return base
    return type(base.__name__, (Extended, base), {"extensions": tuple(extensions)})


def _copies(optimizer: Any, variables: list[Any], name: str) -> list[Any]:
    copies: list[Any] = optimizer.add_optimizer_variables(variables, name)
    for copy, variable in zip(copies, variables, strict=True):
        if copy is not None:  # Keras makes none for scales of float8, which are not optimized but measured
            copy.assign(variable)
    return copies
