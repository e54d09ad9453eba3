"""The learning-rate schedules. They are functions of the step, so there is nothing to store and resume is exact.

A step is a batch, also with accumulated gradients. Only `ReduceOnPlateau` has state: a variable of the optimizer, which
checkpoints hold.
"""

import math
from typing import Any

import keras
from keras import ops

from scena.training.schedules.params import (
    ChangingRateParams,
    CosineDecay,
    CosineRestarts,
    ExponentialDecay,
    FlatAndAnneal,
    InverseTimeDecay,
    LearningRateParams,
    ListedRates,
    Noam,
    OneCycle,
    PolynomialDecay,
    ReduceOnPlateau,
    StepDecay,
    StepListDecay,
)


class ScenaSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Base of the schedules: warm-up, offset and the conversion of steps to epochs. A subclass implements `fraction`."""

    momentum: Any = None
    """A function of the step, if the schedule changes the momentum too."""

    def __init__(self, params: LearningRateParams, steps_per_epoch: int, epochs: int) -> None:
        self.params: Any = params
        self.lr = params.lr
        self.steps_per_epoch = steps_per_epoch
        self.epochs = epochs
        self.warmup_steps = round(params.warmup.amount * (steps_per_epoch if params.warmup.unit == "epochs" else 1))
        self.start = self.warmup_steps
        self.per_epoch = False
        if isinstance(params, ChangingRateParams):
            self.start += round(params.offset_epochs * steps_per_epoch)
            self.per_epoch = params.per == "epoch"
        self.length = max(epochs * steps_per_epoch - self.start, 1) / steps_per_epoch
        """Epochs from the start of the schedule to the end of the training."""

    def fraction(self, epoch: Any) -> Any:
        """The share of `lr` at this (fractional) epoch, counted from the start of the schedule."""
        return ops.ones_like(epoch)

    def __call__(self, step: Any) -> Any:
        """The learning rate at a step."""
        step = ops.convert_to_tensor(step)
        rate = self.lr * self.fraction(self.epoch(step))
        if self.warmup_steps:
            rise = (ops.cast(step, "float32") + 1) / self.warmup_steps
            rise = self.params.warmup_from + (1 - self.params.warmup_from) * rise
            rate = ops.where(step < self.warmup_steps, rise, 1.0) * rate
        return ops.cast(rate, "float32")

    def epoch(self, step: Any) -> Any:
        """The epoch of a step since the start of the schedule; counted in integers, so that no step is lost."""
        after = ops.maximum(step - self.start, 0)
        whole = ops.cast(after // self.steps_per_epoch, "float32")
        if self.per_epoch:
            return whole
        return whole + ops.cast(after % self.steps_per_epoch, "float32") / self.steps_per_epoch

    def get_config(self) -> dict[str, Any]:
        return {"lr": self.lr, "steps_per_epoch": self.steps_per_epoch, "epochs": self.epochs}


class ConstantSchedule(ScenaSchedule):
    """The same value at each step."""


class ExponentialDecaySchedule(ScenaSchedule):
    """A constant factor from epoch to epoch."""

    params: ExponentialDecay

    def fraction(self, epoch: Any) -> Any:
        return ops.maximum(ops.power(self.params.decay, epoch), self.params.min_fraction)


class StepDecaySchedule(ScenaSchedule):
    """A factor every few epochs."""

    params: StepDecay

    def fraction(self, epoch: Any) -> Any:
        return ops.maximum(ops.power(self.params.decay, ops.floor(epoch / self.params.every)), self.params.min_fraction)


class StepListDecaySchedule(ScenaSchedule):
    """A factor at given epochs."""

    params: StepListDecay

    def fraction(self, epoch: Any) -> Any:
        passed = ops.zeros_like(epoch)
        for boundary in self.params.boundaries:
            passed = passed + ops.cast(epoch >= boundary, "float32")
        return ops.power(self.params.decay, passed)


class ListedRatesSchedule(ScenaSchedule):
    """An explicit list."""

    params: ListedRates

    def fraction(self, epoch: Any) -> Any:
        factors = ops.convert_to_tensor(self.params.factors, "float32")
        last = len(self.params.factors) - 1
        return ops.take(factors, ops.minimum(ops.cast(ops.floor(epoch), "int32"), last))


class PolynomialDecaySchedule(ScenaSchedule):
    """A power of the remaining time."""

    params: PolynomialDecay

    def fraction(self, epoch: Any) -> Any:
        time = ops.minimum(epoch / (self.params.decay_epochs or self.length), 1.0)
        end = self.params.end_fraction
        return end + (1 - end) * ops.power(1 - time, self.params.power)


class InverseTimeDecaySchedule(ScenaSchedule):
    """One over the time."""

    params: InverseTimeDecay

    def fraction(self, epoch: Any) -> Any:
        time = epoch / self.params.every
        return 1 / (1 + self.params.decay * (ops.floor(time) if self.params.staircase else time))


class CosineDecaySchedule(ScenaSchedule):
    """Half a cosine."""

    params: CosineDecay

    def fraction(self, epoch: Any) -> Any:
        time = ops.minimum(epoch / (self.params.decay_epochs or self.length), 1.0)
        return _cosine(1.0, self.params.alpha, time)


class CosineRestartsSchedule(ScenaSchedule):
    """Half cosines one after the other."""

    params: CosineRestarts

    def fraction(self, epoch: Any) -> Any:
        """From m_mul ^ period to alpha of it, in each period."""
        time = epoch / self.params.first_period
        growth = self.params.t_mul
        if growth == 1:
            period = ops.floor(time)
            inside = time - period
        else:
            # the first n periods take (growth ^ n - 1) / (growth - 1); a hair is added so that a restart is at its very step
            period = ops.floor(ops.log(1 + time * (growth - 1)) / math.log(growth) + 1e-5)
            begun = (ops.power(growth, period) - 1) / (growth - 1)
            inside = ops.clip((time - begun) / ops.power(growth, period), 0.0, 1.0)
        return _cosine(1.0, self.params.alpha, inside) * ops.power(self.params.m_mul, period)


class OneCycleSchedule(ScenaSchedule):
    """One rise and one fall."""

    params: OneCycle

    def __init__(self, params: OneCycle, steps_per_epoch: int, epochs: int) -> None:
        super().__init__(params, steps_per_epoch, epochs)
        if params.cycle_momentum:
            self.momentum = self._momentum

    def fraction(self, epoch: Any) -> Any:
        """From lr / div_factor to lr, and down to lr / div_factor / final_div_factor."""
        low = 1 / self.params.div_factor
        return self._cycle(epoch, low, 1.0, low / self.params.final_div_factor)

    def _momentum(self, step: Any) -> Any:
        highest, lowest = self.params.max_momentum, self.params.base_momentum
        return self._cycle(self.epoch(ops.convert_to_tensor(step)), highest, lowest, highest)

    def _cycle(self, epoch: Any, first: float, middle: float, last: float) -> Any:
        time = ops.minimum(epoch / self.length, 1.0)
        rise = self.params.rise
        up = _cosine(first, middle, ops.minimum(time / rise, 1.0))
        down = _cosine(middle, last, ops.maximum(time - rise, 0.0) / (1 - rise))
        return ops.where(time < rise, up, down)


class FlatAndAnnealSchedule(ScenaSchedule):
    """Constant, then half a cosine."""

    params: FlatAndAnneal

    def fraction(self, epoch: Any) -> Any:
        time = ops.minimum(epoch / self.length, 1.0)
        flat = self.params.flat
        return _cosine(1.0, self.params.alpha, ops.maximum(time - flat, 0.0) / (1 - flat))


class NoamSchedule(ScenaSchedule):
    """The schedule of "Attention is all you need"; its warm-up is part of the curve."""

    params: Noam

    def __call__(self, step: Any) -> Any:
        offset = round(self.params.offset_epochs * self.steps_per_epoch)
        count = ops.maximum(ops.convert_to_tensor(step) - offset, 0)
        if self.per_epoch:
            count = count // self.steps_per_epoch * self.steps_per_epoch
        time = ops.cast(count, "float32") + 1
        curve = ops.minimum(ops.rsqrt(time), time * self.warmup_steps**-1.5)
        return ops.cast(self.lr * self.params.d_model**-0.5 * curve, "float32")


class ReduceOnPlateauSchedule(ScenaSchedule):
    """A factor that a callback lowers."""

    params: ReduceOnPlateau
    scale: Any = None

    def attach(self, optimizer: Any) -> None:
        """Keeps the factor as a variable of the optimizer."""
        self.scale = optimizer.add_variable(shape=(), initializer="ones", dtype="float32", name="plateau_scale")

    def fraction(self, epoch: Any) -> Any:
        return ops.ones_like(epoch) * (1.0 if self.scale is None else self.scale)

    def reduce(self) -> float:
        """Lowers the factor and returns the new one."""
        lower = max(float(self.scale) * self.params.decay, self.params.min_fraction)
        self.scale.assign(lower)
        return lower


def _cosine(first: Any, last: Any, time: Any) -> Any:
    """From `first` to `last` along half a cosine while `time` goes from 0 to 1."""
    return last + (first - last) * 0.5 * (1 + ops.cos(math.pi * time))
