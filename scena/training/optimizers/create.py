"""From optimizer parameters to a Keras optimizer that is built for a model's weights."""

import re
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from scena.errors import TrainingError
from scena.training.optimizers.mixins import (
    Extended,
    Extension,
    LocalUpdates,
    LookaheadSteps,
    MovingAverage,
    RatedByPath,
    ScaledLoss,
    SummedGradients,
)
from scena.training.optimizers.params import SGD, GradientOptimizerParams, Lookahead, OptimizerParams, no_momentum
from scena.training.schedules.schedules import ReduceOnPlateauSchedule

KERAS_NAMES = {"clip_value": "clipvalue", "clip_norm": "clipnorm", "clip_global_norm": "global_clipnorm"}


def create_optimizer(
    params: OptimizerParams,
    learning_rate: keras.optimizers.schedules.LearningRateSchedule,
    variables: list[Any],
    average: MovingAverage | None = None,
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
    base = with_momentum_of(learning_rate, type(inner).implementation(), inner)
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
    optimizer.exclude_from_weight_decay(var_list=_not_decayed(inner, variables))
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
    values["gradient_accumulation_steps"] = (
        params.gradient_accumulation_steps if params.gradient_accumulation_steps > 1 else None
    )
    return values


def _not_decayed(params: GradientOptimizerParams, variables: list[Any]) -> list[Any]:
    pattern = re.compile(params.weight_decay_exclude)
    return [variable for variable in variables if pattern.search(variable.path)] if pattern.pattern else []


def with_momentum_of(schedule: Any, base: type[Any], params: GradientOptimizerParams) -> type[Any]:
    """The optimizer class with the momentum of the schedule, if the schedule has one.

    Raises:
        TrainingError: the optimizer has no momentum that a schedule can set.
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
