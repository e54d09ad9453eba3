"""Errors of a training."""

from scena.errors import ScenaError


class TrainingError(ScenaError, RuntimeError):
    """The training cannot start or go on; the message says why and how to go on."""
