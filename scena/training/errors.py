"""Errors of a training that a user can fix."""

from scena.errors import ScenaError


class TrainingError(ScenaError, RuntimeError):
    """A training cannot start or continue; the message names the reason and the last good checkpoint."""


class CheckpointError(TrainingError):
    """A checkpoint cannot be written or read."""


class TrainingInterrupted(TrainingError):  # noqa: N818  (nothing went wrong)
    """A training was stopped by a signal or a time limit after its state was saved.

    Args:
        message: what happened, and how to resume.
        exit_status: the exit status of the program.
    """

    label = ""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status  # type: ignore[misc]  # each signal has its own
