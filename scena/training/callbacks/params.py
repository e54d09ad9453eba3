"""Parameters of callbacks: a params class for each, Scena's own ones too."""

from typing import ClassVar, Literal

from scena.params import Params, param
from scena.training.trigger import Trigger


class CallbackParams(Params, abstract=True):
    """A callback of a training. Subclass it with `builds=".callbacks:MyCallback"`, which is created with these parameters."""

    once: ClassVar[bool] = False
    """Whether a training can have only one."""

    def active(self) -> bool:
        """Whether the callback is used with these values."""
        return True


class TrackerParams(CallbackParams, abstract=True):
    """A callback that records the values of a training elsewhere. Subclass it with `builds=".trackers:MyTracker"`."""


class ProgressParams(CallbackParams, abstract=True, builds=".progress:ProgressDisplay"):
    """Shows the progress. Part of every training (`--trainer.progress_every`)."""

    every: float = param(10.0, gt=0, help="seconds between two lines when the output is not a terminal")


class BestModelParams(CallbackParams, abstract=True, builds=".best:BestModel"):
    """Keeps the best model (`--trainer.export_best`, `--trainer.best`)."""


class HistoryParams(CallbackParams, abstract=True, builds=".history:HistoryWriter"):
    """Writes `history.csv`. Part of every training."""


class PlateauParams(CallbackParams, abstract=True, builds=".monitored:PlateauWatcher"):
    """Lowers the rate of `--learning_rate ReduceOnPlateau`."""


class EpochTableParams(CallbackParams, abstract=True, builds=".history:EpochTable"):
    """Logs a table of the epochs when a training ends. Part of every training."""


class ProfilerParams(CallbackParams, builds=".tensorboard:Profiler"):
    """Profiles some steps for TensorBoard's Profile tab."""

    steps: list[int] = param([10, 29], ge=1, help="the first and the last step to profile")

    def __post_init__(self) -> None:
        check_steps("steps", self.steps)


def check_steps(name: str, steps: list[int]) -> None:
    """Raises ValueError unless these are a first and a last step."""
    if len(steps) != 2 or steps[0] > steps[1]:
        raise ValueError(f"{name} are the first and the last step, such as 10 29; received {steps}")


class EarlyStoppingParams(CallbackParams, builds=".monitored:EarlyStopping"):
    """When to stop before the last epoch, by the value that selects the best model."""

    n_to_go: int = param(
        0,
        ge=0,
        help="stop after this many epochs without improvement (0: never)",
        common=True,
        known_as=["patience", "early_stopping_patience"],
    )
    frequency: int = param(1, ge=1, help="check every Nth epoch")
    lower_threshold: float | None = param(
        None, help="mode max: do not stop for lack of improvement below it; mode min: stop as soon as it is reached"
    )
    upper_threshold: float | None = param(
        None, help="mode max: stop as soon as it is reached; mode min: do not stop for lack of improvement above it"
    )
    mode: Literal["min", "max"] | None = param(None, help="which values are better (default: the model's own)")

    def __post_init__(self) -> None:
        low, high = self.lower_threshold, self.upper_threshold
        if low is not None and high is not None and low > high:
            raise ValueError(f"lower_threshold {low} is above upper_threshold {high}")

    def active(self) -> bool:
        return bool(self.n_to_go) or self.lower_threshold is not None or self.upper_threshold is not None


class TensorBoardParams(TrackerParams, builds=".tensorboard:TensorBoardEvents"):
    """Event files for TensorBoard."""

    once = True

    write: bool = param(True, help="write event files at all")
    scalars_every: Trigger = param(
        Trigger(1),
        help="interval of training values, in epochs or steps",
        known_as=["log_every_n_steps", "logging_steps", "update_freq"],
    )
    histograms: Trigger = param(
        Trigger(0), help="interval of distributions of the weights, in epochs (0: never)", known_as=["histogram_freq"]
    )
    gradients: bool = param(
        False, help="distributions of the gradients too, together with those of the weights", backends=["tensorflow"]
    )
    graph: bool = param(False, help="the graph of a training step", backends=["tensorflow"])

    def __post_init__(self) -> None:
        if self.scalars_every.unit == "seconds" or not self.scalars_every:
            raise ValueError("scalars_every is counted in epochs or steps, for example 1 or 100steps")
        if self.histograms.unit != "epochs":
            raise ValueError("histograms is counted in epochs")
        if self.gradients and not self.histograms:
            raise ValueError("gradients needs histograms, for example --tensorboard.histograms 1")

    def active(self) -> bool:
        return self.write
