"""Mixins that add to a Keras optimizer: factors of the learning rate, moving averages, Lookahead, and gradients of several replicas.

Extensions keep their state in variables of the optimizer. So checkpoints hold it, a model's own `train_step` gets it, it counts
updates of the weights and not the batches that are accumulated for one, and a step that loss scaling skips is skipped here too.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import keras
from keras import ops
from keras.src.optimizers.base_optimizer import BaseOptimizer  # Keras has no public name for it

from scena.errors import TrainingError
from scena.model.metric_learning.replicas import running_step


class Extension(Protocol):
    """Runs after each update of a weight."""

    def build(self, optimizer: Any, variables: list[Any]) -> None:
        """Creates its state, one variable for each weight."""

    def after_update(self, optimizer: Any, index: int, variable: Any) -> None:
        """Called when the optimizer has changed a weight."""


@dataclass(slots=True)
class MovingAverage:
    """The exponential moving average of the weights: average = decay · average + (1 - decay) · weight.

    Args:
        decay: the rate.
        ramp: start with a shorter memory, min(decay, (1 + n) / (10 + n)) at update n, so that the first weights are forgotten.
    """

    decay: float
    ramp: bool = False
    averages: list[Any] = field(default_factory=list, init=False)

    def build(self, optimizer: Any, variables: list[Any]) -> None:
        """Starts from the current weights."""
        self.averages = _copies(optimizer, variables, "average")

    def after_update(self, optimizer: Any, index: int, variable: Any) -> None:
        """Moves the average of one weight."""
        average = self.averages[index]
        decay: Any = ops.cast(self.decay, variable.dtype)
        if self.ramp:
            count = ops.cast(optimizer.iterations, variable.dtype)
            decay = ops.minimum(decay, (1 + count) / (10 + count))
        optimizer.assign(average, decay * average + (1 - decay) * variable)

    @contextmanager
    def swapped_in(self, model: keras.Model) -> Iterator[None]:
        """Gives the model its averages as weights while the block runs, then exactly its own weights again."""
        pairs = zip(model.trainable_variables, self.averages, strict=True)
        averaged = [(variable, average) for variable, average in pairs if average is not None]
        own = [(variable, keras.ops.convert_to_numpy(variable.value)) for variable, _ in averaged]
        for variable, average in averaged:
            variable.assign(average)
        try:
            yield
        finally:
            for variable, before in own:
                variable.assign(before)


@dataclass(slots=True)
class LookaheadSteps:
    """Moves the slow weights a share of the way to the fast ones every `period` updates; the fast ones continue from there.

    Args:
        period: updates between two steps of the slow weights.
        step_size: the share of the way.
    """

    period: int
    step_size: float
    slow: list[Any] = field(default_factory=list, init=False)

    def build(self, optimizer: Any, variables: list[Any]) -> None:
        """Starts from the current weights."""
        self.slow = _copies(optimizer, variables, "slow")

    def after_update(self, optimizer: Any, index: int, variable: Any) -> None:
        """Moves the slow copy of one weight every `period` updates."""
        slow = self.slow[index]
        due = ops.equal((optimizer.iterations + 1) % self.period, 0)
        moved = slow + ops.cast(self.step_size, variable.dtype) * (variable - slow)
        optimizer.assign(slow, ops.where(due, moved, slow))
        optimizer.assign(variable, ops.where(due, moved, variable))


def _copies(optimizer: Any, variables: list[Any], name: str) -> list[Any]:
    copies: list[Any] = optimizer.add_optimizer_variables(variables, name)
    for copy, variable in zip(copies, variables, strict=True):
        if copy is not None:  # Keras makes none for scales of float8, which are not optimized but measured
            copy.assign(variable)
    return copies


class Extended:
    """Runs extensions after each update of a weight."""

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
        """Updates one weight, then runs the extensions on it."""
        optimizer: Any = self
        super().update_step(gradient, variable, learning_rate)  # type: ignore[misc]
        index = optimizer._get_variable_index(variable)
        constraint = optimizer._trainable_variables[index].constraint
        if constraint is not None:  # Keras applies it later, but an average has to see it
            optimizer.assign(variable, constraint(ops.convert_to_tensor(variable)))
        for extension in self.extensions:
            extension.after_update(optimizer, index, variable)


class RatedByPath:
    """Scales the learning rate of a weight, and with it its decay, by the factor of the first rule that fits its path."""

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


def rate_factors(rules: Sequence[str], paths: list[str], frozen: Sequence[str] = ()) -> list[float]:
    """The factor of each path: that of the first rule whose expression is found in it, or 1. A rule may match frozen paths only."""
    parsed = [(re.compile(rule.rpartition("=")[0]), float(rule.rpartition("=")[2])) for rule in rules]
    for pattern, _ in parsed:
        if not any(pattern.search(path) for path in (*paths, *frozen)):
            there = "\n  ".join(sorted(paths))
            raise TrainingError(
                f"--optimizer.lr_factors {pattern.pattern!r} fits no weight. The weights are:\n  {there}"
            )
    return [next((factor for pattern, factor in parsed if pattern.search(path)), 1.0) for path in paths]


class SummedGradients:
    """Sums gradients over all replicas before the outermost optimizer sees them.

    Keras sums gradients of TensorFlow's strategies late, after clipping and inside conditions where TensorFlow does not allow it.
    Here the sum comes first, so the optimizer works with the gradients of the whole batch, as on one device.
    """

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Updates the weights."""
        step = running_step()
        if step is not None:
            grads = step.reduce(list(grads))
        super().apply(grads, trainable_variables)  # type: ignore[misc]


class LocalUpdates:
    """Updates weights as on one device, whatever strategy is active.

    Keras' optimizers for TensorFlow pass these calls to the active strategy; those of their base class are what other backends use.
    """

    _apply_weight_decay = BaseOptimizer._apply_weight_decay
    _backend_update_step = BaseOptimizer._backend_update_step
    _backend_increment_gradient_accumulators = BaseOptimizer._backend_increment_gradient_accumulators


class ScaledLoss(SummedGradients, keras.optimizers.LossScaleOptimizer):
    """Scales the loss by the gradients of the whole batch, so that all replicas take or skip a step together."""

    def _tf_apply(self, grads: Any, trainable_variables: Any = None) -> None:
        self._common_apply(grads, trainable_variables=trainable_variables)
