"""An exception of a worker, told to the parent: its text, its traceback, and what kind it was."""

import logging
import signal
import traceback
from typing import Any

from scena.data.errors import DataError, WorkerError
from scena.user_code import user_lines

logger = logging.getLogger("scena.data")

_LIMIT = 50_000


def describe_failure(error: BaseException) -> list[Any]:
    """[message, lines of the user's code, traceback] of an exception."""
    message = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))
    lines: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        lines += [
            f"{line.file}:{line.number} in {line.function}: {line.text}" for line in user_lines(cause.__traceback__)
        ]
        cause = cause.__cause__ or cause.__context__
    return [message[:_LIMIT], "\n".join(lines)[:_LIMIT], text[-_LIMIT:]]


def raised(name: str, message: str, lines: str, trace: str) -> WorkerError:
    """The error to raise in the parent: with the user's lines; the whole traceback where there are none, else in the log."""
    logger.debug("In %s:\n%s", name, trace)
    if not lines:
        return WorkerError(f"{message}\n\nIn {name}:\n{trace}")
    told = "\n".join(f"  {line}" for line in lines.splitlines())
    return WorkerError(f"{message}\nIn {name} (SCENA_LOG_LEVEL=debug shows the whole traceback):\n{told}")


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
