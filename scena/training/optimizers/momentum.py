"""Optimizers whose momentum follows a schedule, as one-cycle training asks for."""

from typing import Any

import keras
from keras import ops

from scena.training.errors import TrainingError
from scena.training.optimizers.params import SGD, GradientOptimizerParams, no_momentum


def with_momentum_of(schedule: Any, base: type[Any], params: GradientOptimizerParams) -> type[Any]:
    """The optimizer class with the schedule's momentum, if the schedule has one.

    Raises:
        TrainingError: the optimizer has none that could follow it.
    """
    if getattr(schedule, "momentum", None) is None:
        return base
    if params.cycled is None:
        raise TrainingError(no_momentum(params, "This schedule"))
    if isinstance(params, SGD):
        return type("SGD", (_CycledSGD,), {"momentum_schedule": staticmethod(schedule.momentum)})
    return type(base.__name__, (base,), {params.cycled: property(_momentum_now(schedule), lambda self, value: None)})


def _momentum_now(schedule: Any) -> Any:
    def momentum(optimizer: Any) -> Any:
        return schedule.momentum(optimizer._iterations)

    return momentum


class _CycledSGD(keras.optimizers.SGD):
    """SGD that asks a schedule for its momentum; Keras' own decides by the value in Python, so a tensor cannot take its place."""

    momentum_schedule: Any

    def __init__(self, learning_rate: Any, momentum: float, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, momentum=momentum or 0.9, **kwargs)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """One update of one variable."""
        velocity = self.momentums[self._get_variable_index(variable)]
        momentum = ops.cast(self.momentum_schedule(self._iterations), variable.dtype)
        step = ops.cast(learning_rate, variable.dtype) * ops.cast(gradient, variable.dtype)
        new = momentum * velocity - step
        self.assign(velocity, new)
        self.assign_add(variable, momentum * new - step if self.nesterov else new)
