"""`TrainingRun`: what one training consists of while it runs; the loop, the callbacks and the checkpoints share it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from scena.data.batch import Cursor
from scena.data.pipeline import DataPipeline
from scena.storage.code_fingerprints import Fingerprints
from scena.storage.run_layout import RunPaths, run_paths
from scena.training.params import TrainerParams

if TYPE_CHECKING:
    import keras

    from scena.backends.base import Engine
    from scena.model.built import BuiltModel
    from scena.scenario.scenario import ScenarioBase
    from scena.training.checks.verification import Verification
    from scena.training.distribution.replica_group import ReplicaGroup
    from scena.training.optimizers.mixins import MovingAverage


TCallback = TypeVar("TCallback")
KINDS = ("data", "step", "validation", "checkpoint")


class Stopwatch:
    """Adds up seconds by kind of work; what is not in `KINDS` counts as the rest."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(KINDS, 0.0)
        self.begun = time.perf_counter()

    @contextmanager
    def measuring(self, kind: str) -> Iterator[None]:
        """Counts the time of the block."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[kind] += time.perf_counter() - begun

    def take(self) -> dict[str, float]:
        """Seconds by kind since the last call, and the whole time as "total"."""
        now = time.perf_counter()
        taken = {**self.seconds, "total": now - self.begun}
        self.seconds, self.begun = dict.fromkeys(KINDS, 0.0), now
        return taken


@dataclass
class Progress:
    """How far a training has come; stored in every checkpoint."""

    epoch: int = 0
    """Completed epochs."""
    step: int = 0
    """Completed steps."""
    step_in_epoch: int = 0
    cursor: Cursor = field(default_factory=Cursor)
    logs: dict[str, float] = field(default_factory=dict)
    """What the last step of the current epoch logged."""
    pending: bool = False
    """Whether what is due after the last step (a validation) has not been done yet."""
    validated: dict[str, float] | None = None
    """The epoch's values, once its validation is done and only its LAV is not."""
    stopped: bool = False
    """Whether the training ended before its last epoch, by early stopping or another callback."""
    finished: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "cursor": self.cursor.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Progress":
        """From plain data.

        Raises:
            msgspec.ValidationError: it is not what `to_json` wrote.
        """
        plain = msgspec.convert({**data, "cursor": None}, _PlainProgress)
        cursor = Cursor.from_json(msgspec.convert(data.get("cursor"), dict[str, Any]))
        return cls(**{**msgspec.structs.asdict(plain), "cursor": cursor})


class _PlainProgress(msgspec.Struct):
    epoch: int
    step: int
    step_in_epoch: int
    cursor: None
    logs: dict[str, float]
    pending: bool
    validated: dict[str, float] | None
    stopped: bool
    finished: bool


@dataclass
class TrainingRun:
    """Everything a running training consists of."""

    params: TrainerParams[Any, Any]
    scenario: "ScenarioBase[Any, Any]"
    directory: Path
    built: "BuiltModel"
    model: "keras.Model"
    engine: "Engine"
    train_data: DataPipeline
    val_data: DataPipeline | None
    steps_per_epoch: int | None
    progress: Progress = field(default_factory=Progress)
    resumed_from: Path | None = None
    """The directory of the checkpoint that this process went on from."""
    extra_variables: "dict[str, list[keras.Variable]]" = field(default_factory=dict)
    """Further groups of variables for checkpoints, beside those of model, optimizer, metrics and callbacks."""

    code: Fingerprints = field(default_factory=dict)
    """The code as it was when the training began; a file that is edited while it runs changes nothing in this process."""

    schedule: Any = None
    """The learning rate's schedule."""
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    """Where the time goes."""
    average: "MovingAverage | None" = None
    """The moving average of the weights, if there is one."""

    replica_group: "ReplicaGroup | None" = None
    """All replicas, if the training uses several devices or processes; it trains instead of the engine then."""

    verification: "Verification | None" = None
    """Compares exports with the model in memory, if that is asked for."""

    retraces: "list[Callable[[], None]]" = field(default_factory=list)
    """Called when a layer has replaced a tensor that compiled functions hold."""

    callbacks: "list[keras.callbacks.Callback]" = field(default_factory=list)
    """All that accompanies the training, Scena's own first."""

    requested: set[str] = field(default_factory=set)
    """What callbacks asked for and has not been done yet: "val", "lav", "checkpoint"."""

    def callback(self, kind: type[TCallback]) -> TCallback | None:
        """The first callback of a class, if there is one."""
        return next((callback for callback in self.callbacks if isinstance(callback, kind)), None)

    def request_checkpoint(self) -> None:
        """Asks for a checkpoint after the current block of steps."""
        self.requested.add("checkpoint")

    def request_validation(self) -> None:
        """Asks for a validation after the current block of steps."""
        self.requested.add("val")

    def request_stop(self) -> None:
        """Asks to end the training after the current block of steps, as early stopping does."""
        self.model.stop_training = True

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """While the block runs, the model has its averaged weights, if there are any: for validation, LAV and export."""
        from scena.model.state.layer_state import Layers

        layers = Layers(self.built.root, self.model)
        derived = layers.derived_from_trained()
        with self.average.swapped_in(self.model) if self.average is not None else nullcontext():
            if derived and layers.refresh_trained():
                self._retrace()
            yield
        if derived and self.average is not None and layers.refresh_trained():
            self._retrace()

    def _retrace(self) -> None:
        for retrace in self.retraces:
            retrace()

    @property
    def paths(self) -> RunPaths:
        """Where checkpoints, logs and exports are."""
        return run_paths(self.directory, self.params)

    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        return float(self.model.optimizer.learning_rate)
