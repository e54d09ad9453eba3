"""From optimizer parameters to a Keras optimizer that is built for a model's weights."""

import re
from collections.abc import Sequence
from typing import Any

import keras

from scena.training.optimizers.extensions import Extension, LookaheadSteps, MovingAverage, extended
from scena.training.optimizers.momentum import with_momentum_of
from scena.training.optimizers.params import GradientOptimizerParams, Lookahead, OptimizerParams
from scena.training.optimizers.rates import rated
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
    """The optimizer that the parameters describe, following the schedule, with its state for these weights.

    Args:
        params: which optimizer, with its settings.
        learning_rate: the schedule.
        variables: the weights to train.
        average: keeps a moving average of them.
        scale_loss: scale the loss dynamically, so that float16 gradients neither vanish nor overflow.
        distributed: the weights are those of one of several replicas, which sum their gradients.
        frozen: the paths of weights that are not trained; a rule of `lr_factors` may be about them only.
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
    base = rated(base, inner.lr_factors, frozen)
    cls = extended(base, extensions)
    scaled: Any = keras.optimizers.LossScaleOptimizer
    if distributed:
        from scena.training.optimizers.replicated import ScaledLoss, replicated

        cls, scaled = replicated(cls, outermost=not scale_loss), ScaledLoss
    optimizer: Any = cls(learning_rate=learning_rate, **_arguments(inner))
    optimizer.exclude_from_weight_decay(var_list=_not_decayed(inner, variables))
    if isinstance(learning_rate, ReduceOnPlateauSchedule):
        learning_rate.attach(optimizer)
    if scale_loss:
        optimizer = scaled(optimizer)
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
