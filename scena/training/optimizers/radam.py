"""Rectified Adam (Liu et al. 2020, algorithm 2), which Keras does not have."""

import math
from typing import Any

from keras import ops

from scena.training.optimizers.moments import TwoMomentOptimizer


class RAdam(TwoMomentOptimizer):
    """Adam without adaptive steps until its second moment is certain enough, and with a rectified step size after that.

    Args:
        learning_rate: a number or a schedule.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the root of the second moment.
        kwargs: what every Keras optimizer takes.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **kwargs)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """One update of one variable."""
        momentum, velocity = self.moments(variable)
        dtype = variable.dtype
        gradient = ops.cast(gradient, dtype)
        step = ops.cast(self.iterations + 1, dtype)
        beta_1, beta_2 = ops.cast(self.beta_1, dtype), ops.cast(self.beta_2, dtype)
        new_momentum = beta_1 * momentum + (1 - beta_1) * gradient
        new_velocity = beta_2 * velocity + (1 - beta_2) * ops.square(gradient)
        self.assign(momentum, new_momentum)
        self.assign(velocity, new_velocity)
        mean = new_momentum / (1 - ops.power(beta_1, step))
        # 1 - beta_2 ^ step: the plain difference has no correct digit left in float32 when the length below is near its limit
        remaining = -ops.expm1(step * math.log(self.beta_2))
        longest = 2 / (1 - self.beta_2) - 1
        length = longest - 2 * step * (1 - remaining) / remaining
        certain = length > 4
        length = ops.maximum(length, 4.0)
        rectified = ops.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
        spread = ops.sqrt(new_velocity / remaining) + self.epsilon
        change = ops.where(certain, rectified * mean / spread, mean)
        self.assign_sub(variable, ops.cast(learning_rate, dtype) * change)
