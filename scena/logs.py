"""Logging of the `scena` program: to the console, as SCENA_LOG_LEVEL says."""

import logging
import os
import sys

from scena.errors import ScenaError
from scena.terminal import visible

LEVELS = ("debug", "info", "warning", "error")


class VisibleFormatter(logging.Formatter):
    """Shows control characters, which may come from names of files, as escapes."""

    def format(self, record: logging.LogRecord) -> str:
        """The text of a record."""
        return visible(super().format(record))


class ConsoleHandler(logging.Handler):
    """Writes to whatever standard error is at the moment: a progress bar may stand in for it for a while."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one line."""
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except OSError:  # a closed terminal must not end a training
            self.handleError(record)


class LastResortHandler(ConsoleHandler):
    """Shows warnings of a program that has set up no logging, as Python does while a logger has no handler at all."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(VisibleFormatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one line, unless somebody else shows it."""
        log = logging.getLogger("scena")
        shown = log.propagate and logging.getLogger().handlers
        if not shown and not any(type(handler) is ConsoleHandler for handler in log.handlers):
            super().emit(record)


def log_level() -> str:
    """The level that SCENA_LOG_LEVEL asks for."""
    level = os.environ.get("SCENA_LOG_LEVEL", "info").lower()
    if level not in LEVELS:
        raise ScenaError(f"SCENA_LOG_LEVEL must be one of {', '.join(LEVELS)}. Received: {level!r}.")
    return level


def set_up_console() -> None:
    """Shows Scena's log on the console, and silences TensorFlow's below errors."""
    log = logging.getLogger("scena")
    log.setLevel(log_level().upper())
    log.propagate = False
    if not any(isinstance(handler, ConsoleHandler) for handler in log.handlers):
        handler = ConsoleHandler()
        handler.setFormatter(VisibleFormatter("%(message)s" if log.level > logging.DEBUG else "%(name)s: %(message)s"))
        log.addHandler(handler)
    for noisy in ("tensorflow", "absl", "h5py"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
