"""Logging of the `scena` program to the console; SCENA_LOG_LEVEL sets the level."""

import logging
import os
import sys

from scena.errors import ScenaError
from scena.terminal import visible

LEVELS = ("debug", "info", "warning", "error")


class VisibleFormatter(logging.Formatter):
    """Shows control characters, which may come from names of files, as escapes."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class ConsoleHandler(logging.Handler):
    """Writes to the current standard error, which a progress bar may replace for a while."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except OSError:  # a closed terminal must not end a training
            self.handleError(record)


class LastResortHandler(ConsoleHandler):
    """Shows warnings of a program without logging setup, as Python does for a logger without handlers."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(VisibleFormatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one line, unless another handler shows it."""
        log = logging.getLogger("scena")
        shown = log.propagate and logging.getLogger().handlers
        if not shown and not any(type(handler) is ConsoleHandler for handler in log.handlers):
            super().emit(record)


def log_level() -> str:
    """The level in SCENA_LOG_LEVEL."""
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
