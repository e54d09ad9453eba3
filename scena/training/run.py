"""`TrainingRun`: the parts of a running training, shared by the loop, the callbacks and the checkpoints."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from scena.data.pipeline import DataPipeline
from scena.data.sample import Cursor
from scena.model.state.layer_state import Layers
from scena.storage.code_fingerprints import Fingerprints
from scena.storage.run_layout import RunPaths, run_paths
from scena.training.params import TrainerParams

if TYPE_CHECKING:
    import keras

    from scena.backends.base import Engine
    from scena.model.built import BuiltModel
    from scena.scenario.scenario import ScenarioBase
    from scena.training.checks.verification import Verification
    from scena.training.optimizers.create import MovingAverage
    from scena.training.steps import Steps


TCallback = TypeVar("TCallback")
KINDS = ("data", "step", "validation", "checkpoint")


class Stopwatch:
    """Adds up seconds by kind of work; anything not in `KINDS` is the rest."""

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
    """How far a training is; stored in every checkpoint."""

    epoch: int = 0
    """Completed epochs."""
    step: int = 0
    """Completed steps."""
    step_in_epoch: int = 0
    cursor: Cursor = field(default_factory=Cursor)
    logs: dict[str, float] = field(default_factory=dict)
    """The logs of the last step of the current epoch."""
    pending: bool = False
    """Whether a validation that is due after the last step has not run yet."""
    validated: dict[str, float] | None = None
    """The epoch's values, between its validation and its LAV."""
    stopped: bool = False
    """Whether the training ended before its last epoch, by early stopping or another callback."""
    finished: bool = False

    def to_json(self) -> dict[str, Any]:
        """The progress as plain data."""
        return {**asdict(self), "cursor": self.cursor.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Progress":
        """Reads the result of `to_json`.

        Raises:
            msgspec.ValidationError: it is something else.
            KeyError: the cursor is incomplete.
        """
        missing = {own.name for own in fields(cls)} - set(data)
        if missing:
            raise msgspec.ValidationError(f"the progress lacks {', '.join(sorted(missing))}")
        progress = msgspec.convert(data, cls)
        progress.cursor = Cursor.from_json(data["cursor"])  # raises KeyError if it is incomplete
        return progress


@dataclass
class TrainingRun:
    """The parts of a running training."""

    params: TrainerParams[Any, Any]
    scenario: "ScenarioBase[Any, Any]"
    directory: Path
    built: "BuiltModel"
    model: "keras.Model"
    engine: "Engine"
    steps: "Steps"
    """Takes the steps, with the engine and, if there are any, the other replicas."""
    train_data: DataPipeline
    val_data: DataPipeline | None
    steps_per_epoch: int | None
    progress: Progress = field(default_factory=Progress)
    resumed_from: Path | None = None
    """The directory of the checkpoint that this process resumed from."""

    code: Fingerprints = field(default_factory=dict)
    """Fingerprints of the code when the training began; later edits of a file do not change this process."""
    schedule: Any = None
    """The schedule of the learning rate."""
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    average: "MovingAverage | None" = None
    """The moving average of the weights, if there is one."""
    verification: "Verification | None" = None
    """Compares exports with the model in memory, with --trainer.verify_export."""
    retraces: "list[Callable[[], None]]" = field(default_factory=list)
    """Called when a layer has replaced a tensor that compiled functions hold."""
    callbacks: "list[keras.callbacks.Callback]" = field(default_factory=list)
    """All callbacks, Scena's own first."""
    label_counts: dict[str, int] | None = None
    """The number of classes of targets that a loss turns into one-hot vectors; None until the loss has been traced for that."""
    not_finite_reported: bool = False
    """Whether a warning has named a sample that is not finite; one is enough."""
    requested: set[str] = field(default_factory=set)
    """Pending requests of callbacks: "val", "lav", "checkpoint"."""

    def callback(self, kind: type[TCallback]) -> TCallback | None:
        """The first callback of a class, if there is one."""
        return next((callback for callback in self.callbacks if isinstance(callback, kind)), None)

    def request_checkpoint(self) -> None:
        """Requests a checkpoint after the current step block."""
        self.requested.add("checkpoint")

    def request_validation(self) -> None:
        """Requests a validation after the current step block."""
        self.requested.add("val")

    def request_stop(self) -> None:
        """Requests the end of the training after the current step block, as early stopping does."""
        self.model.stop_training = True

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Gives the model its averaged weights, if there are any, while the block runs: for validation, LAV and export."""
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
