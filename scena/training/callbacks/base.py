"""`TrainerCallback`: a Keras callback that sees the whole run and whose state goes into checkpoints."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras

if TYPE_CHECKING:
    from scena.model.tensorboard_data import TensorBoardData
    from scena.training.run import TrainingRun


class TrainerCallback(keras.callbacks.Callback):
    """Base of Scena's own callbacks. Any other Keras callback works as well.

    Args:
        settings: the callback's parameters, available as `self.settings` (Keras uses `self.params` for its own purposes).
    """

    run: "TrainingRun"

    def __init__(self, settings: Any = None) -> None:
        super().__init__()
        self.settings = settings

    def set_run(self, run: "TrainingRun") -> None:
        """Called once before the training starts."""
        self.run = run

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        """Called after each compiled block of steps, with the logs of its last step."""

    def on_validation(self, logs: dict[str, float]) -> None:
        """Called after a validation or LAV with its results (`val_…` and `lav_…`), at whatever step it happened."""

    def on_data(self, data: "dict[str, TensorBoardData]") -> None:
        """Called after a validation or LAV with what metrics and the evaluator gave beside numbers, by name (`val_…`, `lav_…`)."""

    def inside_epoch(self, logs: dict[str, float]) -> None:
        """Called after a validation or LAV that was not at the end of an epoch, with its results."""

    def before_lav(self, epoch: int, logs: dict[str, float]) -> None:
        """Called at the end of an epoch after its validation and before its LAV, with what there is so far.

        Setting `model.stop_training` here makes this epoch the last one, so that LAV runs in it.
        """

    def wants_batches(self) -> bool:
        """Whether the hooks of batches have to be called, if there are any; asked once, when the training begins."""
        return True

    def steps_until_weights(self, step: int) -> int | None:
        """After how many more steps `on_train_batch_end` wants to see the weights as they are then; the block ends there.

        A callback that requests a checkpoint or a validation (`run.request_checkpoint()`) at a step of its own says that step here.
        None: not at all; batches are then reported after their block, each with its exact logs.
        """
        return None

    def variables(self) -> list[keras.Variable]:
        """Variables that belong to neither the model nor the optimizer; checkpoints keep them (an EMA of the weights, for example)."""
        return []

    def state(self) -> dict[str, Any]:
        """What a checkpoint has to keep of this callback, as plain data."""
        return {}

    def add_files(self, directory: Path) -> None:
        """Adds files to the directory of a checkpoint that is being written."""

    def pinned_step(self) -> int | None:
        """The step of a checkpoint that must stay, however old it gets."""
        return None

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` returned, and brings this callback's files to what they were then (`run.resumed_from`)."""

    def reset(self) -> None:
        """Removes this callback's files: a run that was cut off before its first checkpoint starts from the beginning."""
