"""`TrainingRun`: what one training consists of while it runs; the loop, the callbacks and the checkpoints share it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from scena.data.cursor import Cursor
from scena.data.pipeline import DataPipeline
from scena.params import Params
from scena.training.params import TrainerParams

if TYPE_CHECKING:
    import keras

    from scena.model.built import BuiltModel
    from scena.model.tf_engine import TensorFlowEngine


class Validation(Protocol):
    """Measures a model on a source of data (LAV)."""

    def run(self, source: Any, progress: Any = None) -> dict[str, float]:
        """Named results on the source."""


class TrainedScenario(Protocol):
    """What a trainer needs of a scenario."""

    params: Any

    @classmethod
    def name(cls) -> str:
        """How the scenario is named on the command line."""

    def build(self) -> "BuiltModel":
        """Creates data, model and graph."""

    def create_training_lav(self, built: "BuiltModel", trainer_params: Any) -> Validation:
        """LAV on the model in memory."""

    def export(
        self, built: "BuiltModel", directory: Path, trainer_params: Params, *, saved_model: bool, **more: Any
    ) -> None:
        """Writes the model with all that a prediction needs."""

    def complete_export(self, built: "BuiltModel", directory: Path) -> None:
        """Adds what was left out of an export while the training ran."""

    def store(self, directory: Path, trainer_params: Params) -> None:
        """Writes the parameters into the run's directory."""


@dataclass
class Progress:
    """How far a training has come; stored in every checkpoint."""

    epoch: int = 0
    """Completed epochs."""
    step: int = 0
    """Completed steps."""
    step_in_epoch: int = 0
    cursor: Cursor = field(default_factory=Cursor)
    finished: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "epoch": self.epoch,
            "step": self.step,
            "step_in_epoch": self.step_in_epoch,
            "cursor": self.cursor.to_json(),
            "finished": self.finished,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Progress":
        """From plain data."""
        return cls(
            epoch=int(data["epoch"]),
            step=int(data["step"]),
            step_in_epoch=int(data["step_in_epoch"]),
            cursor=Cursor.from_json(data["cursor"]),
            finished=bool(data["finished"]),
        )


@dataclass
class TrainingRun:
    """Everything a running training consists of."""

    params: TrainerParams[Any, Any]
    scenario: TrainedScenario
    directory: Path
    built: "BuiltModel"
    model: "keras.Model"
    engine: "TensorFlowEngine"
    train_data: DataPipeline
    val_data: DataPipeline | None
    steps_per_epoch: int | None
    progress: Progress = field(default_factory=Progress)

    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        return float(self.model.optimizer.learning_rate)
