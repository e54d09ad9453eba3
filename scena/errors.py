"""The errors that a user can cause: the command line shows their message, and no traceback. And suggestions for misspelled names."""

from collections.abc import Iterable, Iterator
from typing import ClassVar


class ScenaError(Exception):
    """Something a user can fix. The message names what was wrong, what was received and how to fix it."""

    exit_status: ClassVar[int] = 1
    label: ClassVar[str] = "error: "
    """What the command line puts before the message."""


class ParamsError(ScenaError, ValueError):
    """A parameter, file or flag is wrong. The message names it, what was received and how to fix it; no traceback
    is needed.
    """

    exit_status: ClassVar[int] = 2


class DataError(ScenaError, RuntimeError):
    """Data is wrong or cannot be read: a sample, a file, an address, or a processor working on one of them."""


SKIP_HINT = "Set on_error=skip to skip such samples."
"""A command adds the names of its flags."""


class SampleError(DataError):
    """One sample cannot be read or processed. Pipelines with `on_error=skip` skip it."""

    def __str__(self) -> str:
        return f"{self.reason.rstrip('.')}. {SKIP_HINT}"

    @property
    def reason(self) -> str:
        """What happened, for the log of a pipeline that skips."""
        return str(self.args[0])


class EmptyDataError(DataError):
    """A data set without a single sample."""


class WorkerError(DataError):
    """A worker process failed or died; the message holds its own traceback."""


class ModelError(ScenaError, RuntimeError):
    """A graph, loss or metric is not what Scena needs; the message names it and what to return instead."""


class ScenarioError(ScenaError, RuntimeError):
    """A scenario, a run or an export cannot be found or read; the message names what was looked for and where."""


class TrainingError(ScenaError, RuntimeError):
    """A training cannot start or continue; the message names the reason and the last good checkpoint."""


class CheckpointError(TrainingError):
    """A checkpoint cannot be written or read."""


class TrainingInterrupted(TrainingError):  # noqa: N818  (nothing went wrong)
    """A training was stopped by a signal or a time limit after its state was saved. The message tells how to resume."""

    label = ""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status  # type: ignore[misc]  # each signal has its own


class ConversionError(ScenaError, RuntimeError):
    """A model cannot be converted, or its conversion gives other answers."""


class ExperimentError(ScenaError, RuntimeError):
    """A sheet, a search or a table of runs cannot be read or run."""


class Interrupted(ExperimentError):  # noqa: N818  (nothing went wrong)
    """Ctrl-C or SIGTERM ended the scheduling; runs were stopped and can be resumed."""

    exit_status = 130
    label = ""


def first_line(error: BaseException) -> str:
    """The first line of an error's message that is not empty, or the name of its class; TensorFlow's messages fill pages."""
    lines = (line.strip() for line in str(getattr(error, "message", error)).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def close_names(word: str, options: Iterable[str], count: int = 3) -> list[str]:
    """The options that look most like `word`, whatever their case; the best first."""
    import difflib  # only errors need it, and it is slow to import

    folded: dict[str, str] = {}
    for option in options:
        if not option.startswith("_"):
            folded.setdefault(option.lower().replace("-", "_"), option)
    matches = difflib.get_close_matches(word.lower().replace("-", "_"), list(folded), count, 0.65)
    return [folded[match] for match in matches]


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """` (did you mean …?)`, or nothing if nothing is close."""
    close = close_names(word, options)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it, each once: the chain of an error that was raised again may be a circle."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        cause = left.pop()
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            left += [cause.__context__, cause.__cause__]
