"""Parameters of the learning-rate schedules. Choose with `--learning_rate NAME`; a bare number sets `lr`."""

from scena.params import Params, param


class LearningRateParams(Params, shorthand="lr", abstract=True):
    """The learning rate and how it changes."""

    lr: float = param(0.001, gt=0, help="the learning rate to start from")


class Constant(LearningRateParams, builds="scena.training.schedules.schedules:ConstantSchedule"):
    """The same learning rate throughout."""


class ExponentialDecay(LearningRateParams, builds="scena.training.schedules.schedules:ExponentialDecaySchedule"):
    """lr · decay ^ epoch, changing at the end of each epoch or at each step."""

    decay: float = param(0.99, gt=0, le=1, help="factor per epoch")
    staircase: bool = param(True, help="change once per epoch (else a little at each step)")
