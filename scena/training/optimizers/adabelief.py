"""AdaBelief (Zhuang et al. 2020, algorithm 2), which Keras does not have."""

from typing import Any

import keras
from keras import ops


class AdaBelief(keras.optimizers.Optimizer):
    """Steps by the belief in the gradient: Adam with the variance around the first moment as its second moment.

    Args:
        learning_rate: a number or a schedule.
        beta_1: decay of the first moment.
        beta_2: decay of the variance.
        epsilon: added to the variance and to its root.
        kwargs: what every Keras optimizer takes.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-14,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def build(self, variables: list[Any]) -> None:
        """Creates the two moments of each variable."""
        if self.built:
            return
        super().build(variables)
        self._momentums, self._variances = self.add_optimizer_variables(variables, ["momentum", "variance"])

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """One update of one variable."""
        index = self._get_variable_index(variable)
        momentum, variance = self._momentums[index], self._variances[index]
        dtype = variable.dtype
        gradient = ops.cast(gradient, dtype)
        step = ops.cast(self.iterations + 1, dtype)
        beta_1, beta_2 = ops.cast(self.beta_1, dtype), ops.cast(self.beta_2, dtype)
        new_momentum = beta_1 * momentum + (1 - beta_1) * gradient
        surprise = ops.square(gradient - new_momentum)
        new_variance = beta_2 * variance + (1 - beta_2) * surprise + self.epsilon
        self.assign(momentum, new_momentum)
        self.assign(variance, new_variance)
        mean = new_momentum / (1 - ops.power(beta_1, step))
        spread = ops.sqrt(new_variance / (1 - ops.power(beta_2, step))) + self.epsilon
        self.assign_sub(variable, ops.cast(learning_rate, dtype) * mean / spread)

    def get_config(self) -> dict[str, Any]:
        """The plain values of this optimizer."""
        return {**super().get_config(), "beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon}
