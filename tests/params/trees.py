"""A tree of parameters with every kind of field, for the tests of scena.params."""

import enum
from pathlib import Path
from typing import Any, Literal, Self

from scena.params import Params, ParamsError, Parsed, param, parse


class Mode(enum.Enum):
    MIN = "min"
    MAX = "max"


class Every:
    """A leaf type of its own: "10min" or "3epochs"."""

    def __init__(self, count: int, unit: str) -> None:
        self.count, self.unit = count, unit

    @classmethod
    def from_param(cls, raw: Any) -> Self:
        if isinstance(raw, int) and not isinstance(raw, bool):
            return cls(raw, "epochs")
        for unit in ("epochs", "min"):
            if isinstance(raw, str) and raw.removesuffix(unit).isdigit():
                return cls(int(raw.removesuffix(unit)), unit)
        raise ValueError("a number of epochs, or a time such as 10min")

    def to_param(self) -> str:
        return f"{self.count}{self.unit}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Every) and self.to_param() == other.to_param()

    def __hash__(self) -> int:
        return hash(self.to_param())


class BackendParams(Params):
    """What turns the picture into features."""


class CNN(BackendParams, builds=".graphs:ConvNet"):
    """Convolutions and a dense layer."""

    filters: list[int] = param([40, 20], help="filters of each convolution", ge=1)
    dense: int = param(100, help="units of the dense layer after them", ge=1)


class MLP(BackendParams, builds=".graphs:Perceptron"):
    """Dense layers."""

    nodes: list[int] = param([100], help="units of each layer")
    activation: str = param("relu", help="the non-linearity")


class ModelParams(Params):
    """The network and what it tells apart."""

    n_classes: int = param(10, help="number of classes", gt=1)
    graph: BackendParams = param(CNN(), help="the network")


class Processor(Params, abstract=True):
    """One step of the input pipeline."""


class Augment(Processor):
    """Random changes."""

    p: float = param(0.5, help="probability", ge=0, le=1)


class Crop(Processor):
    """Cuts out the middle."""

    size: tuple[int, int] = param((28, 28), help="height and width")


class HeadParams(Params):
    units: int = param(1, help="outputs")


class Wide(HeadParams):
    factor: float = param(2.0, help="how much wider")


class DataParams(Params):
    """What the samples are, and how they are prepared."""

    processors: list[Processor] = param([Augment(), Crop()], help="the steps, in order")
    weights: dict[str, float] = param({"a": 1.0}, help="weight of each source")
    heads: dict[str, HeadParams] = param({"main": HeadParams()}, help="outputs by name")


class ScenarioParams(Params):
    data: DataParams = param(flat=True)
    model: ModelParams = param(flat=True)


class SourceParams(Params):
    """Where samples come from."""

    lists: list[Path] = param(required=True, help="list files to train on")
    dataset: Literal["digits", "mnist"] = param("digits", help="the data set")


class LearningRateParams(Params, shorthand="lr"):
    """A constant learning rate."""

    lr: float = param(0.001, help="the learning rate", gt=0)


class ExponentialDecay(LearningRateParams):
    """Falls by a factor each epoch."""

    decay: float = param(0.99, help="the factor")


class EarlyStoppingParams(Params):
    """Stops when nothing improves."""

    n_to_go: int = param(5, help="how many validations to wait", aliases=["patience"])
    mode: Mode = param(Mode.MIN, help="what is better")


class BatchParams(Params):
    batch_size: int = param(16, help="samples in a batch", ge=1)
    limit: int | None = param(None, help="use only the first samples")


class LavParams(Params):
    """Load and validate."""

    pipeline: BatchParams = param(inline=True)
    run_eagerly: bool = param(False, flat=True, help="op by op, for debugging")


class TrainerParams(Params):
    """How long to train, and what to keep."""

    epochs: int = param(100, help="number of epochs", ge=1, aliases=["n_epochs"])
    output_dir: Path | None = param(None, help="where the run is stored (default: a new folder)")
    val_every: Every = param(Every(1, "epochs"), help="how often to validate")
    shapes: list[list[int]] = param([], help="one list for each input")
    tag: int | float | str | None = param(None, help="a mark of your own")
    note: str | None = param(None, help="a remark")
    names: list[str] = param([], help="names of the classes")
    extra: Any = param(None, help="whatever you like")
    seen: set[int] = param({1}, help="samples to skip")
    force_eager: bool = param(False, help="run op by op")
    step: int = param(0, hidden=True)
    scenario: ScenarioParams = param(flat=True)
    source: SourceParams = param(flat="data")
    lav: LavParams = param(flat=True)
    learning_rate: LearningRateParams = param(flat=True, help="how fast to learn")
    early_stopping: EarlyStoppingParams | None = param(None, flat=True, help="when to stop")


class Root(Params):
    trainer: TrainerParams


REQUIRED = ["--data.lists", "train.lst"]


def parsed(*words: str) -> Parsed[Root]:
    """A command line with what is required added."""
    return parse(Root(), [*words, *([] if any(word.startswith("--data.lists") for word in words) else REQUIRED)])


def trainer(*words: str) -> TrainerParams:
    """The trainer's parameters of a command line."""
    return parsed(*words).params.trainer


def error(*words: str) -> str:
    """The message of a wrong command line."""
    try:
        result = parsed(*words)
    except ParamsError as problem:
        return str(problem)
    raise AssertionError(f"no error for {words}, but {result.params}")
