"""Parameters of the optimizers, each with only its own flags. Choose with `--optimizer NAME`."""

import math
import re
from typing import ClassVar

from scena.params import Params, param
from scena.params.declare import short_name, subclasses

NO_DECAY = r"(^|/)(bias|gamma|beta)$|norm"
"""Biases and weights of normalisation layers: decaying them rarely helps."""


class OptimizerParams(Params, abstract=True):
    """How gradients change the weights."""


class GradientOptimizerParams(OptimizerParams, abstract=True):
    """The shared parameters of all optimizers: clipping, weight decay, learning-rate factors and gradient accumulation."""

    cycled: ClassVar[str | None] = None
    """The attribute that a one-cycle schedule may change at each step; None if there is none."""

    clip_value: float | None = param(None, gt=0, help="clip each gradient value to ± this", known_as=["clipvalue"])
    clip_norm: float | None = param(None, gt=0, help="scale each gradient down to this norm", known_as=["clipnorm"])
    clip_global_norm: float | None = param(
        None,
        gt=0,
        help="scale all gradients down together to this norm",
        known_as=["global_clipnorm", "gradient_clip_val", "max_grad_norm"],
    )
    weight_decay: float = param(0.0, ge=0, help="share of the weights subtracted per step, times the learning rate")
    weight_decay_exclude: str = param(
        NO_DECAY, help="regular expression on paths of variables that are not decayed (default: biases, normalisation)"
    )
    lr_factors: list[str] = param(
        [],
        help="rules EXPRESSION=FACTOR, such as '/encoder/=0.1': the factor on the learning rate of weights whose path matches the "
        "regular expression; the first match counts",
    )
    gradient_accumulation_steps: int = param(
        1,
        ge=1,
        aliases=["gradient_accumulation", "trainer.gradient_accumulation_steps"],
        help="batches whose gradients are averaged for one update",
        known_as=["accumulate_grad_batches"],
    )

    def __post_init__(self) -> None:
        given = [name for name in ("clip_value", "clip_norm", "clip_global_norm") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"choose one of {' and '.join(given)}: gradients are clipped in one way only")
        for rule in self.lr_factors:
            _check_rule(rule)
        try:
            re.compile(self.weight_decay_exclude)
        except re.error as error:
            raise ValueError(
                f"weight_decay_exclude is not a regular expression ({error}): {self.weight_decay_exclude!r}"
            ) from None


def no_momentum(optimizer: OptimizerParams, schedule: str) -> str:
    """The error for a schedule that changes the momentum of an optimizer without one."""
    able = [cls for cls in subclasses(GradientOptimizerParams) if cls.cycled is not None and not cls.__abstract__]
    return (
        f"{schedule} changes the momentum, and --optimizer {short_name(type(optimizer))} has none that can be changed. Add "
        f"--learning_rate.cycle_momentum False, or choose one of {', '.join(map(short_name, able))}."
    )


def _check_rule(rule: str) -> None:
    pattern, _, factor = rule.rpartition("=")
    try:
        if not pattern or not 0 <= float(factor) < math.inf:
            raise ValueError("the factor must be a number of at least 0")
        re.compile(pattern)
    except (ValueError, re.error) as error:
        raise ValueError(
            f"a rule of lr_factors is EXPRESSION=FACTOR, for example '/encoder/=0.1'; received {rule!r} ({error})"
        ) from None


class MomentOptimizerParams(GradientOptimizerParams, abstract=True):
    """The shared parameters of Adam and its variants."""

    cycled: ClassVar[str | None] = "beta_1"
    beta_1: float = param(0.9, ge=0, lt=1, aliases=["beta1"], help="decay of the first moment")
    beta_2: float = param(0.999, ge=0, lt=1, aliases=["beta2"], help="decay of the second moment")
    epsilon: float = param(1e-7, gt=0, help="keeps the step finite")


class Adam(MomentOptimizerParams, builds="keras.optimizers:Adam"):
    """Adam: adaptive steps from running moments of the gradient."""

    amsgrad: bool = param(False, help="use the largest second moment seen so far")


class AdamW(Adam, builds="keras.optimizers:AdamW"):
    """Adam with weight decay on by default."""

    weight_decay: float = param(0.004, ge=0, help="share of the weights subtracted per step, times the learning rate")


class AdaBelief(MomentOptimizerParams, builds=".two_moments:AdaBelief"):
    """Adam whose steps grow where the gradient comes as expected (Zhuang et al. 2020)."""

    epsilon: float = param(1e-14, gt=0, help="keeps the step finite")


class RAdam(MomentOptimizerParams, builds=".two_moments:RAdam"):
    """Adam whose first steps are rectified while its second moment is still uncertain (Liu et al. 2020)."""

    beta_2: float = param(0.999, gt=0, lt=1, aliases=["beta2"], help="decay of the second moment")


class Adamax(MomentOptimizerParams, builds="keras.optimizers:Adamax"):
    """Adam with the infinity norm."""


class Nadam(MomentOptimizerParams, builds="keras.optimizers:Nadam"):
    """Adam with Nesterov momentum."""

    cycled = None


class Adadelta(GradientOptimizerParams, builds="keras.optimizers:Adadelta"):
    """Adadelta: steps scaled by a running average of past steps."""

    rho: float = param(0.95, ge=0, lt=1, help="decay of the averages")
    epsilon: float = param(1e-7, gt=0, help="keeps the step finite")


class Adagrad(GradientOptimizerParams, builds="keras.optimizers:Adagrad"):
    """Adagrad: smaller steps for parameters that were updated often."""

    initial_accumulator_value: float = param(0.1, ge=0, help="where the sum of squares starts")
    epsilon: float = param(1e-7, gt=0, help="keeps the step finite")


class Lion(GradientOptimizerParams, builds="keras.optimizers:Lion"):
    """Lion: steps by the sign of the momentum."""

    cycled = "beta_1"
    beta_1: float = param(0.9, ge=0, lt=1, aliases=["beta1"], help="mix of gradient and momentum in the step")
    beta_2: float = param(0.99, ge=0, lt=1, aliases=["beta2"], help="decay of the momentum")


class RMSprop(GradientOptimizerParams, builds="keras.optimizers:RMSprop"):
    """RMSprop: steps divided by a running average of the gradient's magnitude."""

    rho: float = param(0.9, ge=0, lt=1, aliases=["beta2"], help="decay of the average")
    momentum: float = param(0.0, ge=0, aliases=["beta1"], help="momentum of the steps")
    epsilon: float = param(1e-7, gt=0, help="keeps the step finite")
    centered: bool = param(False, help="divide by the variance instead of the second moment")


class SGD(GradientOptimizerParams, builds="keras.optimizers:SGD"):
    """Stochastic gradient descent."""

    cycled = "momentum"
    momentum: float = param(0.0, ge=0, le=1, help="momentum of the steps")
    nesterov: bool = param(False, help="look ahead along the momentum")


class Lookahead(OptimizerParams):
    """Any optimizer, with slow weights that follow every few steps (Zhang et al. 2019)."""

    inner: GradientOptimizerParams = param(Adam(), help="the inner optimizer")
    sync_period: int = param(6, ge=1, aliases=["k"], help="steps between two updates of the slow weights")
    slow_step_size: float = param(
        0.5, gt=0, le=1, aliases=["alpha"], help="how far the slow weights move towards the fast ones"
    )
