"""The learning-rate schedules, as functions of the optimizer's step: nothing to store, exact on resume."""

from typing import Any

import keras
from keras import ops

from scena.training.schedules.params import Constant, ExponentialDecay, LearningRateParams


class ScenaSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Base of the schedules.

    Args:
        params: the schedule's parameters.
        steps_per_epoch: optimizer steps in one epoch.
        epochs: epochs of the whole training.
    """

    def __init__(self, params: LearningRateParams, steps_per_epoch: int, epochs: int) -> None:
        self.lr = params.lr
        self.steps_per_epoch = steps_per_epoch
        self.epochs = epochs

    def epoch(self, step: Any) -> Any:
        """The (fractional) epoch of an optimizer step."""
        return ops.cast(step, "float32") / self.steps_per_epoch

    def get_config(self) -> dict[str, Any]:
        """The plain values of this schedule."""
        return dict(vars(self))


class ConstantSchedule(ScenaSchedule):
    """The same value at each step."""

    def __init__(self, params: Constant, steps_per_epoch: int, epochs: int) -> None:
        super().__init__(params, steps_per_epoch, epochs)

    def __call__(self, step: Any) -> Any:
        """The learning rate at a step."""
        del step
        return ops.convert_to_tensor(self.lr, "float32")


class ExponentialDecaySchedule(ScenaSchedule):
    """A constant factor from epoch to epoch."""

    def __init__(self, params: ExponentialDecay, steps_per_epoch: int, epochs: int) -> None:
        super().__init__(params, steps_per_epoch, epochs)
        self.decay = params.decay
        self.staircase = params.staircase

    def __call__(self, step: Any) -> Any:
        """The learning rate at a step."""
        epoch = self.epoch(step)
        return self.lr * ops.power(self.decay, ops.floor(epoch) if self.staircase else epoch)
