"""The errors that a user can cause: the command line shows their message, and no traceback."""

from typing import ClassVar


class ScenaError(Exception):
    """Something a user can fix. The message names what was wrong, what was received and how to fix it."""

    exit_status: ClassVar[int] = 1
    label: ClassVar[str] = "error: "
    """What the command line puts before the message."""


class DataError(ScenaError, RuntimeError):
    """Data is wrong or cannot be read: a sample, a file, an address, or a processor working on one of them."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message that is not empty, or the name of its class; TensorFlow's messages fill pages."""
    lines = (line.strip() for line in str(getattr(error, "message", error)).splitlines())
    return next((line for line in lines if line), type(error).__name__)
