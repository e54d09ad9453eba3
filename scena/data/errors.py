"""Errors of the input pipeline; each message names the sample, what was wrong and what to do."""

from scena.errors import ScenaError


class DataError(ScenaError, RuntimeError):
    """The data, or a processor working on it, is wrong."""


class EmptyDataError(DataError):
    """A data set without a single sample."""


class WorkerError(DataError):
    """A worker process failed or died; the message holds its own traceback."""
