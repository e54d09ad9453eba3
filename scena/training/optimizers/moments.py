"""What optimizers with two moments of the gradient have in common."""

from typing import Any

import keras


class TwoMomentOptimizer(keras.optimizers.Optimizer):
    """Keeps a first and a second moment of each variable's gradient; a subclass has the update rule.

    Args:
        learning_rate: a number or a schedule.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: keeps the step finite where the second moment vanishes.
        kwargs: what every Keras optimizer takes.
    """

    second_moment = "velocity"
    """The name of the second moment among the optimizer's variables."""

    def __init__(self, learning_rate: Any, beta_1: float, beta_2: float, epsilon: float, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def build(self, variables: list[Any]) -> None:
        """Creates the two moments of each variable."""
        if self.built:
            return
        super().build(variables)
        self._first, self._second = self.add_optimizer_variables(variables, ["momentum", self.second_moment])

    def moments(self, variable: Any) -> tuple[Any, Any]:
        """The two moments of a variable."""
        index = self._get_variable_index(variable)
        return self._first[index], self._second[index]

    def get_config(self) -> dict[str, Any]:
        """The plain values of this optimizer."""
        return {**super().get_config(), "beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon}
