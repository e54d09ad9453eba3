"""Parameters of what accompanies a training."""

from typing import Literal

from scena.params import Params, param
from scena.training.trigger import Trigger


class CallbackParams(Params, abstract=True):
    """Something that accompanies a training. Subclass it with `builds=".callbacks:MyCallback"`: it is created with these parameters."""


class TrackerParams(CallbackParams, abstract=True):
    """Something that records the values of a training elsewhere. Subclass it with `builds=".trackers:MyTracker"`."""


class EarlyStoppingParams(Params):
    """When to stop before the last epoch, by the value that decides about the best model."""

    n_to_go: int = param(0, ge=0, help="stop after so many epochs without improvement (0: never)")
    frequency: int = param(1, ge=1, help="look every so many epochs")
    lower_threshold: float | None = param(
        None, help="mode max: do not stop for lack of improvement below it; mode min: stop as soon as it is reached"
    )
    upper_threshold: float | None = param(
        None, help="mode max: stop as soon as it is reached; mode min: do not stop for lack of improvement above it"
    )
    mode: Literal["min", "max"] | None = param(None, help="which values are better (default: as the model says)")

    def __post_init__(self) -> None:
        low, high = self.lower_threshold, self.upper_threshold
        if low is not None and high is not None and low > high:
            raise ValueError(f"lower_threshold {low} is above upper_threshold {high}")


class TensorBoardParams(Params):
    """What is written for TensorBoard."""

    write: bool = param(True, help="write event files at all")
    scalars_every: Trigger = param(Trigger(1), help="values of the training every so many epochs or steps")
    histograms: Trigger = param(Trigger(0), help="distributions of the weights every so many epochs (0: never)")
    gradients: bool = param(
        False,
        help="distributions of the gradients too, whenever there are those of the weights",
        backends=["tensorflow"],
    )
    graph: bool = param(False, help="the graph of a training step", backends=["tensorflow"])

    def __post_init__(self) -> None:
        if self.scalars_every.unit == "seconds" or not self.scalars_every:
            raise ValueError("scalars_every is counted in epochs or steps, for example 1 or 100steps")
        if self.histograms.unit != "epochs":
            raise ValueError("histograms is counted in epochs")
        if self.gradients and not self.histograms:
            raise ValueError("gradients needs histograms, for example --tensorboard.histograms 1")
