"""`TrainerCallback`: a Keras callback that sees the whole run and whose state goes into checkpoints."""

from typing import TYPE_CHECKING, Any

import keras

if TYPE_CHECKING:
    from scena.training.run import TrainingRun


class TrainerCallback(keras.callbacks.Callback):
    """Base of Scena's own callbacks. Any other Keras callback works as well."""

    run: "TrainingRun"

    def set_run(self, run: "TrainingRun") -> None:
        """Called once before the training starts."""
        self.run = run

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        """Called after each compiled block of steps, with the logs of its last step."""

    def on_validation(self, logs: dict[str, float]) -> None:
        """Called after a validation or LAV with its results (`val_…` and `lav_…`), at whatever step it happened."""

    def variables(self) -> list[keras.Variable]:
        """Variables that belong to neither the model nor the optimizer; checkpoints keep them (an EMA of the weights, for example)."""
        return []

    def state(self) -> dict[str, Any]:
        """What a checkpoint has to keep of this callback, as plain data."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` returned."""
