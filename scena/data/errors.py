"""Errors of the input pipeline; each message names the sample, what was wrong and what to do."""

from scena.errors import DataError as DataError


class SampleError(DataError):
    """One sample cannot be read or processed. Pipelines with `on_error=skip` skip it."""

    def __str__(self) -> str:
        return f"{self.reason.rstrip('.')}. Set on_error=skip to skip such samples."

    @property
    def reason(self) -> str:
        """What happened, for the log of a pipeline that skips."""
        return str(self.args[0])


class EmptyDataError(DataError):
    """A data set without a single sample."""


class WorkerError(DataError):
    """A worker process failed or died; the message holds its own traceback."""
