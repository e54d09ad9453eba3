"""Parameters of the optimizers, each with only its own flags. Choose with `--optimizer NAME`."""

from scena.params import Params, param


class OptimizerParams(Params, abstract=True):
    """How gradients change the weights."""

    clip_value: float | None = param(None, gt=0, help="clip each gradient value to ± this")
    clip_norm: float | None = param(None, gt=0, help="scale each gradient down to this norm")
    clip_global_norm: float | None = param(None, gt=0, help="scale all gradients down together to this norm")

    def __post_init__(self) -> None:
        given = [name for name in ("clip_value", "clip_norm", "clip_global_norm") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"choose one of {' and '.join(given)}: gradients are clipped in one way only")


class Adam(OptimizerParams, builds="keras.optimizers:Adam"):
    """Adam: adaptive steps from running moments of the gradient."""

    beta_1: float = param(0.9, ge=0, lt=1, aliases=["beta1"], help="decay of the first moment")
    beta_2: float = param(0.999, ge=0, lt=1, aliases=["beta2"], help="decay of the second moment")
    epsilon: float = param(1e-7, gt=0, help="keeps the step finite")
    amsgrad: bool = param(False, help="use the largest second moment seen so far")


class Adamax(OptimizerParams, builds="keras.optimizers:Adamax"):
    """Adam with the infinity norm."""

    beta_1: float = param(0.9, ge=0, lt=1, aliases=["beta1"], help="decay of the first moment")
    beta_2: float = param(0.999, ge=0, lt=1, aliases=["beta2"], help="decay of the infinity norm")
    epsilon: float = param(1e-7, gt=0, help="keeps the step finite")


class Nadam(OptimizerParams, builds="keras.optimizers:Nadam"):
    """Adam with Nesterov momentum."""

    beta_1: float = param(0.9, ge=0, lt=1, aliases=["beta1"], help="decay of the first moment")
    beta_2: float = param(0.999, ge=0, lt=1, aliases=["beta2"], help="decay of the second moment")
    epsilon: float = param(1e-7, gt=0, help="keeps the step finite")


class Adadelta(OptimizerParams, builds="keras.optimizers:Adadelta"):
    """Adadelta: steps scaled by a running average of past steps."""

    rho: float = param(0.95, ge=0, lt=1, help="decay of the averages")
    epsilon: float = param(1e-7, gt=0, help="keeps the step finite")


class Adagrad(OptimizerParams, builds="keras.optimizers:Adagrad"):
    """Adagrad: smaller steps for parameters that were updated often."""

    initial_accumulator_value: float = param(0.1, ge=0, help="where the sum of squares starts")
    epsilon: float = param(1e-7, gt=0, help="keeps the step finite")


class Lion(OptimizerParams, builds="keras.optimizers:Lion"):
    """Lion: steps by the sign of the momentum."""

    beta_1: float = param(0.9, ge=0, lt=1, aliases=["beta1"], help="mix of gradient and momentum in the step")
    beta_2: float = param(0.99, ge=0, lt=1, aliases=["beta2"], help="decay of the momentum")


class RMSprop(OptimizerParams, builds="keras.optimizers:RMSprop"):
    """RMSprop: steps divided by a running average of the gradient's magnitude."""

    rho: float = param(0.9, ge=0, lt=1, aliases=["beta2"], help="decay of the average")
    momentum: float = param(0.0, ge=0, aliases=["beta1"], help="momentum of the steps")
    epsilon: float = param(1e-7, gt=0, help="keeps the step finite")
    centered: bool = param(False, help="divide by the variance instead of the second moment")


class SGD(OptimizerParams, builds="keras.optimizers:SGD"):
    """Stochastic gradient descent."""

    momentum: float = param(0.0, ge=0, le=1, help="momentum of the steps")
    nesterov: bool = param(False, help="look ahead along the momentum")
