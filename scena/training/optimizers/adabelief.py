"""AdaBelief (Zhuang et al. 2020, algorithm 2), which Keras does not have."""

from typing import Any

from keras import ops

from scena.training.optimizers.moments import TwoMomentOptimizer


class AdaBelief(TwoMomentOptimizer):
    """Steps by the belief in the gradient: Adam with the variance around the first moment as its second moment.

    Args:
        learning_rate: a number or a schedule.
        beta_1: decay of the first moment.
        beta_2: decay of the variance.
        epsilon: added to the variance and to its root.
        kwargs: what every Keras optimizer takes.
    """

    second_moment = "variance"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-14,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **kwargs)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """One update of one variable."""
        momentum, variance = self.moments(variable)
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
