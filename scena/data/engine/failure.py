"""An exception of a worker, told to the parent: its text, its traceback, and what kind it was."""

import signal
import traceback
from typing import Any

from scena.data.errors import DataError, WorkerError

_LIMIT = 50_000


def describe_failure(error: BaseException) -> list[Any]:
    """[message, traceback] of an exception."""
    message = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))
    return [message[:_LIMIT], text[-_LIMIT:]]


def raised(name: str, message: str, trace: str) -> WorkerError:
    """The error to raise in the parent."""
    return WorkerError(f"{message}\n\nIn {name}:\n{trace}")


def died(name: str, status: int | None) -> WorkerError:
    """The error for a worker that is gone."""
    if status is None:
        how = "closed its connection"
    elif status < 0:
        try:
            how = f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            how = f"was killed by signal {-status}"
        if status == -signal.SIGKILL:
            how += " (by hand, or because the machine ran out of memory: see `dmesg`)"
    else:
        how = f"ended with exit status {status}"
    return WorkerError(
        f"The {name} of the input pipeline {how}. Resume the run, use fewer processes if memory is short, or set "
        "on_worker_death=restart to go on by itself."
    )
