"""Errors of a training that a user can put right."""

from scena.errors import ScenaError


class TrainingError(ScenaError, RuntimeError):
    """A training cannot start or go on; the message says why, and where the last good state is."""


class CheckpointError(TrainingError):
    """A checkpoint cannot be written or read."""


class TrainingInterrupted(TrainingError):  # noqa: N818  (nothing went wrong)
    """A training was stopped by a signal or a time limit after its state was saved.

    Args:
        message: what happened, and how to go on.
        exit_status: what the program leaves with.
    """

    label = ""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status  # type: ignore[misc]  # each signal has its own
