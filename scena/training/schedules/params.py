"""Parameters of the learning-rate schedules. Choose with `--learning_rate NAME`; a bare number sets `lr`."""

from pathlib import Path
from typing import Literal

from scena.params import Params, param
from scena.training.trigger import Trigger


class RateFinderParams(Params):
    """The range to try, and where the plot goes."""

    plot: Path = param(Path("lr-find.png"), aliases=["picture"], help="write the plot to this file")
    lowest: float = param(1e-7, gt=0, help="the learning rate to start from")
    highest: float = param(10.0, gt=0, help="the learning rate to end at")
    steps: int = param(200, ge=10, help="number of batches of the range test")
    smoothing: float = param(0.3, ge=0, help="how far the loss is smoothed, in decades of the learning rate")
    budget: Trigger = param(
        Trigger(240, "seconds"), help="time or steps of all trial trainings together: 4min, 5000steps; 0 for none"
    )
    validation_samples: int = param(1000, ge=1, help="validate trials on at most this many samples")

    def __post_init__(self) -> None:
        if self.lowest >= self.highest:
            raise ValueError(f"lowest {self.lowest:g} must be below highest {self.highest:g}")
        if self.budget and self.budget.unit == "epochs":
            raise ValueError(
                f"budget is a time or a number of steps, for example 4min or 5000steps; received {self.budget.to_param()}"
            )


class LearningRateParams(Params, shorthand="lr", abstract=True):
    """The learning rate and how it changes."""

    lr: float = param(
        0.001, ge=0, help="the learning rate that the schedule starts from, after the warm-up", common=True
    )
    warmup: Trigger = param(
        Trigger(0),
        aliases=["warmup_epochs"],
        help="length of a linear warm-up, in epochs or steps: 2, 500steps",
        known_as=["warmup_steps", "warmup_ratio"],
    )
    warmup_from: float = param(0.0, ge=0, le=1, help="the warm-up starts at this share of the learning rate")

    def __post_init__(self) -> None:
        if self.warmup.unit == "seconds":
            raise ValueError(
                f"warmup is counted in epochs or steps, for example 2 or 500steps; received {self.warmup.to_param()}"
            )


class Constant(LearningRateParams, builds=".schedules:ConstantSchedule"):
    """A constant learning rate."""


class ChangingRateParams(LearningRateParams, abstract=True):
    """A learning rate that depends on the step."""

    per: Literal["step", "epoch"] = param("step", help="change at each step, or once per epoch")
    offset_epochs: float = param(0.0, ge=0, help="epochs that pass before the schedule starts")


class ExponentialDecay(ChangingRateParams, builds=".schedules:ExponentialDecaySchedule"):
    """lr · decay ^ epoch."""

    decay: float = param(0.99, gt=0, le=1, help="factor per epoch")
    min_fraction: float = param(0.0, ge=0, le=1, aliases=["decay_min_fraction"], help="never below this share of lr")
    per: Literal["step", "epoch"] = param("epoch", help="change at each step, or once per epoch")


class StepDecay(ChangingRateParams, builds=".schedules:StepDecaySchedule"):
    """Multiplied by `decay` every few epochs."""

    decay: float = param(0.1, gt=0, le=1, help="factor at each change")
    every: float = param(10.0, gt=0, help="epochs between two changes")
    min_fraction: float = param(0.0, ge=0, le=1, help="never below this share of lr")


class StepListDecay(ChangingRateParams, builds=".schedules:StepListDecaySchedule"):
    """Multiplied by `decay` at each of the given epochs."""

    boundaries: list[float] = param([30.0, 60.0, 90.0], ge=0, help="epochs at whose start the rate changes")
    decay: float = param(0.1, gt=0, le=1, help="factor at each change")


class ListedRates(ChangingRateParams, builds=".schedules:ListedRatesSchedule"):
    """An explicit list with a share of lr for each epoch; the last one stays."""

    factors: list[float] = param([1.0], ge=0, help="share of lr in each epoch, the last for all that follow")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.factors:
            raise ValueError("factors needs at least one number")


class PolynomialDecay(ChangingRateParams, builds=".schedules:PolynomialDecaySchedule"):
    """From lr to `end_fraction` of it along a power of the remaining time."""

    power: float = param(1.0, gt=0, help="1 is a straight line")
    end_fraction: float = param(0.0001, ge=0, le=1, help="share of lr at the end")
    decay_epochs: float | None = param(None, gt=0, help="epochs until the end value (default: all)")


class InverseTimeDecay(ChangingRateParams, builds=".schedules:InverseTimeDecaySchedule"):
    """lr / (1 + decay · epoch / every)."""

    decay: float = param(0.5, ge=0, help="how fast it falls")
    every: float = param(1.0, gt=0, help="epochs that count as one in the formula")
    staircase: bool = param(False, help="fall in steps, each after `every` epochs")


class CosineDecay(ChangingRateParams, builds=".schedules:CosineDecaySchedule"):
    """Half a cosine from lr to `alpha` of it."""

    alpha: float = param(0.0, ge=0, le=1, help="share of lr at the end")
    decay_epochs: float | None = param(None, gt=0, help="epochs until the end value (default: all)")


class CosineRestarts(ChangingRateParams, builds=".schedules:CosineRestartsSchedule"):
    """Half cosines that start again (SGDR)."""

    alpha: float = param(0.0, ge=0, le=1, help="share of lr at the end of each period")
    first_period: float = param(10.0, gt=0, help="epochs of the first period")
    t_mul: float = param(2.0, ge=1, help="each period is this much longer than the one before")
    m_mul: float = param(1.0, gt=0, help="each period starts this much higher than the one before")


class OneCycle(ChangingRateParams, builds=".schedules:OneCycleSchedule"):
    """Up to lr and down to almost nothing; the momentum changes the other way."""

    rise: float = param(0.3, gt=0, lt=1, aliases=["pct_start"], help="share of the time in which the rate rises")
    div_factor: float = param(25.0, ge=1, help="the cycle starts at lr / this")
    final_div_factor: float = param(1e4, ge=1, help="and ends at lr / div_factor / this")
    cycle_momentum: bool = param(
        True, help="change momentum or beta_1 too (SGD, Adam and its variants, Lion; must be False with others)"
    )
    base_momentum: float = param(0.85, ge=0, lt=1, help="momentum at the highest learning rate")
    max_momentum: float = param(0.95, ge=0, lt=1, help="momentum at the lowest learning rate")


class FlatAndAnneal(ChangingRateParams, builds=".schedules:FlatAndAnnealSchedule"):
    """Constant, then half a cosine; with --learning_rate.warmup it is warm-up + constant + cosine."""

    flat: float = param(0.72, ge=0, lt=1, help="share of the time at lr")
    alpha: float = param(0.0, ge=0, le=1, help="share of lr at the end")


class Noam(ChangingRateParams, builds=".schedules:NoamSchedule"):
    """lr · d_model ^ -0.5 · min(step ^ -0.5, step · warmup ^ -1.5), for transformers."""

    lr: float = param(1.0, gt=0, help="factor of the whole curve")
    d_model: int = param(512, ge=1, help="width of the model")
    warmup: Trigger = param(
        Trigger(4000, "steps"), aliases=["warmup_epochs"], help="where the curve is highest, in epochs or steps"
    )
    warmup_from: float = param(0.0, hidden=True, help="fixed by the curve")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.warmup:
            raise ValueError("Noam needs a warmup, for example 4000steps")


class ReduceOnPlateau(LearningRateParams, builds=".schedules:ReduceOnPlateauSchedule"):
    """Multiplied by `decay` whenever the value that selects the best model stops improving."""

    decay: float = param(0.1, gt=0, lt=1, aliases=["factor"], help="factor at each change")
    patience: int = param(10, ge=1, help="epochs without improvement before a change")
    cooldown: int = param(0, ge=0, help="epochs after a change that do not count")
    min_delta: float = param(1e-4, ge=0, help="smaller improvements do not count")
    min_fraction: float = param(0.0, ge=0, le=1, help="never below this share of lr")
