"""From optimizer parameters to a Keras optimizer that is built for a model's weights, with mixins for what Keras does not have.

Mixins add factors of the learning rate, moving averages, Lookahead, a scheduled momentum, and gradients of several replicas. Extensions
keep their state in variables of the optimizer. So checkpoints hold it, a model's own `train_step` gets it, it counts updates of the
weights and not the batches that are accumulated for one, and a step that loss scaling skips is skipped here too.
"""

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import keras
from keras import ops
from keras.src.optimizers.base_optimizer import BaseOptimizer  # Keras has no public name for it

from scena.errors import TrainingError
from scena.model.metric_learning.replicas import running_step
from scena.training.optimizers.params import SGD, GradientOptimizerParams, Lookahead, OptimizerParams, no_momentum
from scena.training.schedules.schedules import ReduceOnPlateauSchedule

KERAS_NAMES = {"clip_value": "clipvalue", "clip_norm": "clipnorm", "clip_global_norm": "global_clipnorm"}


def create_optimizer(
    params: OptimizerParams,
    learning_rate: keras.optimizers.schedules.LearningRateSchedule,
    variables: list[Any],
    average: "MovingAverage | None" = None,
    *,
    scale_loss: bool = False,
    distributed: bool = False,
    frozen: Sequence[str] = (),
) -> keras.optimizers.Optimizer:
    """The optimizer that the parameters describe, with its state for these weights.

    Args:
        params: which optimizer, with its settings.
        learning_rate: the schedule.
        variables: the weights to train.
        average: keeps a moving average of them.
        scale_loss: scale the loss dynamically, so that float16 gradients neither vanish nor overflow.
        distributed: the weights belong to one of several replicas, which sum their gradients.
        frozen: the paths of weights that are not trained; a rule of `lr_factors` may match these only.
    """
    extensions: list[Extension] = []
    inner = params
    if isinstance(params, Lookahead):
        inner = params.inner
        extensions.append(LookaheadSteps(params.sync_period, params.slow_step_size))
    if average is not None:
        extensions.append(average)
    assert isinstance(inner, GradientOptimizerParams)
    base = _with_momentum_of(learning_rate, type(inner).implementation(), inner)
    mixins = {
        SummedGradients: distributed and not scale_loss,
        Extended: bool(extensions),
        RatedByPath: bool(inner.lr_factors),
        LocalUpdates: distributed,  # after RatedByPath, which calls it for each group of weights
    }
    used = [mixin for mixin, wanted in mixins.items() if wanted]
    settings = {"extensions": tuple(extensions), "rules": tuple(inner.lr_factors), "frozen": tuple(frozen)}
    cls = type(base.__name__, (*used, base), settings) if used else base
    optimizer: Any = cls(learning_rate=learning_rate, **_arguments(inner))
    if inner.weight_decay_exclude:
        pattern = re.compile(inner.weight_decay_exclude)
        optimizer.exclude_from_weight_decay(var_list=[each for each in variables if pattern.search(each.path)])
    if isinstance(learning_rate, ReduceOnPlateauSchedule):
        learning_rate.attach(optimizer)
    if scale_loss:
        optimizer = (ScaledLoss if distributed else keras.optimizers.LossScaleOptimizer)(optimizer)
    optimizer.build(variables)
    return optimizer


def _arguments(params: GradientOptimizerParams) -> dict[str, Any]:
    values = {KERAS_NAMES.get(name, name): getattr(params, name) for name in type(params).__params__}
    del values["weight_decay_exclude"], values["lr_factors"]
    values["weight_decay"] = params.weight_decay or None  # Keras wants None where nothing is to be done
    if params.gradient_accumulation_steps == 1:
        values["gradient_accumulation_steps"] = None
    return values


def _with_momentum_of(schedule: Any, base: type[Any], params: GradientOptimizerParams) -> type[Any]:
    """The optimizer class with the momentum of the schedule, if the schedule has one."""
    if getattr(schedule, "momentum", None) is None:
        return base
    if params.cycled is None:
        raise TrainingError(no_momentum(params, "This schedule"))
    if isinstance(params, SGD):
        return type("SGD", (_CycledSGD,), {"momentum_schedule": staticmethod(schedule.momentum)})

    def momentum(optimizer: Any) -> Any:
        return schedule.momentum(optimizer._iterations)

    return type(base.__name__, (base,), {params.cycled: property(momentum, lambda self, value: None)})


class _CycledSGD(keras.optimizers.SGD):
    """SGD whose momentum follows a schedule. Keras' own compares it in Python, so it cannot be a tensor."""

    momentum_schedule: Any

    def __init__(self, learning_rate: Any, momentum: float, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, momentum=momentum or 0.9, **kwargs)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        velocity = self.momentums[self._get_variable_index(variable)]
        momentum = ops.cast(self.momentum_schedule(self._iterations), variable.dtype)
        step = ops.cast(learning_rate, variable.dtype) * ops.cast(gradient, variable.dtype)
        new = momentum * velocity - step
        self.assign(velocity, new)
        self.assign_add(variable, momentum * new - step if self.nesterov else new)


@dataclass(slots=True)
class Extension(ABC):
    """Keeps a copy of each weight, and changes it after each update of the weight."""

    name: ClassVar[str]
    copies: list[Any] = field(default_factory=list, init=False)

    def build(self, optimizer: Any, variables: list[Any]) -> None:
        """Creates the copies, with the current weights."""
        self.copies = optimizer.add_optimizer_variables(variables, self.name)
        for copy, variable in zip(self.copies, variables, strict=True):
            if copy is not None:  # Keras makes none for scales of float8, which are not optimized but measured
                copy.assign(variable)

    @abstractmethod
    def after_update(self, optimizer: Any, index: int, variable: Any) -> None:
        """Called when the optimizer has changed a weight."""


@dataclass(slots=True)
class MovingAverage(Extension):
    """The exponential moving average of the weights: average = decay · average + (1 - decay) · weight.

    Args:
        decay: the rate.
        ramp: start with a shorter memory, min(decay, (1 + n) / (10 + n)) at update n, so that the first weights are forgotten.
    """

    name = "average"
    decay: float
    ramp: bool = False

    def after_update(self, optimizer: Any, index: int, variable: Any) -> None:
        average = self.copies[index]
        decay: Any = ops.cast(self.decay, variable.dtype)
        if self.ramp:
            count = ops.cast(optimizer.iterations, variable.dtype)
            decay = ops.minimum(decay, (1 + count) / (10 + count))
        optimizer.assign(average, decay * average + (1 - decay) * variable)

    @contextmanager
    def swapped_in(self, model: keras.Model) -> Iterator[None]:
        """Gives the model its averages as weights while the block runs, then exactly its own weights again."""
        pairs = zip(model.trainable_variables, self.copies, strict=True)
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
class LookaheadSteps(Extension):
    """Moves the slow weights a share of the way to the fast ones every `period` updates; the fast ones continue from there."""

    name = "slow"
    period: int
    step_size: float

    def after_update(self, optimizer: Any, index: int, variable: Any) -> None:
        slow = self.copies[index]
        due = ops.equal((optimizer.iterations + 1) % self.period, 0)
        moved = slow + ops.cast(self.step_size, variable.dtype) * (variable - slow)
        optimizer.assign(slow, ops.where(due, moved, slow))
        optimizer.assign(variable, ops.where(due, moved, variable))


class Extended:
    """A mixin that runs extensions after each update of a weight."""

    extensions: tuple[Extension, ...] = ()

    def build(self, variables: list[Any]) -> None:
        """Creates the state of the optimizer and of the extensions."""
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
    """Scales the learning rate of a weight, and with it its decay, by the factor of the first rule that matches its path."""

    rules: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()

    def build(self, variables: list[Any]) -> None:
        """Creates the state of the optimizer and finds the factor of each weight."""
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
    """The factor of each path: that of the first matching rule, or 1. A rule may match frozen paths only."""
    parsed = [(re.compile(rule.rpartition("=")[0]), float(rule.rpartition("=")[2])) for rule in rules]
    for pattern, _ in parsed:
        if not any(pattern.search(path) for path in (*paths, *frozen)):
            there = "\n  ".join(sorted(paths))
            raise TrainingError(
                f"--optimizer.lr_factors {pattern.pattern!r} matches no weight. The weights are:\n  {there}"
            )
    return [next((factor for pattern, factor in parsed if pattern.search(path)), 1.0) for path in paths]


class SummedGradients:
    """Sums gradients over all replicas before the outermost optimizer sees them.

    Keras sums gradients of TensorFlow's strategies late, after clipping and inside conditions where TensorFlow does not allow it.
    Here the sum comes first, so the optimizer works with the gradients of the whole batch, as on one device.
    """

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Updates the weights with the gradients of the whole batch."""
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
