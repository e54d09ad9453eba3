"""AdaBelief (Zhuang et al. 2020, algorithm 2) and Rectified Adam (Liu et al. 2020, algorithm 2), which Keras does not have."""

import math
from typing import Any

import keras
from keras import ops


class TwoMomentOptimizer(keras.optimizers.Optimizer):
    """Keeps a first and a second moment of each variable's gradient; a subclass has the update rule.

    Args:
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: keeps the step finite where the second moment vanishes.
        kwargs: those of every Keras optimizer.
    """

    second_moment = "velocity"
    """The name of the second moment among the optimizer's variables."""

    def __init__(self, *, beta_1: float, beta_2: float, epsilon: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def build(self, variables: list[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        self._first, self._second = self.add_optimizer_variables(variables, ["momentum", self.second_moment])

    def at_step(self, gradient: Any, variable: Any) -> tuple[Any, ...]:
        """The variable's two moments, and in its type the gradient, the number of the step, beta_1 and beta_2."""
        index = self._get_variable_index(variable)
        numbers = (gradient, self.iterations + 1, self.beta_1, self.beta_2)
        return self._first[index], self._second[index], *(ops.cast(number, variable.dtype) for number in numbers)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon}


class RAdam(TwoMomentOptimizer):
    """Adam without adaptive steps until its second moment is certain enough, and with a rectified step size after that."""

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        momentum, velocity, gradient, step, beta_1, beta_2 = self.at_step(gradient, variable)
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
        self.assign_sub(variable, ops.cast(learning_rate, variable.dtype) * change)


class AdaBelief(TwoMomentOptimizer):
    """Steps by the belief in the gradient: Adam with the variance around the first moment as its second moment."""

    second_moment = "variance"

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        momentum, variance, gradient, step, beta_1, beta_2 = self.at_step(gradient, variable)
        new_momentum = beta_1 * momentum + (1 - beta_1) * gradient
        surprise = ops.square(gradient - new_momentum)
        new_variance = beta_2 * variance + (1 - beta_2) * surprise + self.epsilon
        self.assign(momentum, new_momentum)
        self.assign(variance, new_variance)
        mean = new_momentum / (1 - ops.power(beta_1, step))
        spread = ops.sqrt(new_variance / (1 - ops.power(beta_2, step))) + self.epsilon
        self.assign_sub(variable, ops.cast(learning_rate, variable.dtype) * mean / spread)
