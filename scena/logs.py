"""Logging of the `scena` program to the console; SCENA_LOG_LEVEL sets the level."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from scena.display import visible
from scena.errors import ScenaError

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


class UnconfiguredHandler(ConsoleHandler):
    """Shows the log of a program that has set up no logging: on standard error, in a notebook below the cell."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(VisibleFormatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if in_notebook():  # standard error is red there
            print(self.format(record), flush=True)
        else:
            super().emit(record)


_by_packages: set[logging.Handler] = set()
"""Handlers that packages added to the root during a training: they do not mean that the program has set up logging."""


@contextmanager
def shown_log() -> Iterator[None]:
    """While the block runs, Scena logs at level info. A program without logging setup shows it; one whose console shows only
    warnings stays quiet.
    """
    log, root = logging.getLogger("scena"), logging.getLogger()
    level, propagate = log.level, log.propagate
    consoles = [handler for handler in root.handlers if type(handler) is logging.StreamHandler]
    before = set(root.handlers)
    shown = any(isinstance(handler, ConsoleHandler) for handler in log.handlers) or (
        propagate and before - _by_packages
    )
    console, least = UnconfiguredHandler(), root.level

    def quiet(record: logging.LogRecord) -> bool:
        return record.levelno >= least or not record.name.startswith("scena")

    if level == logging.NOTSET:
        log.setLevel(log_level().upper())
        for handler in consoles:
            handler.addFilter(quiet)
    if not shown:
        silence_others()
        log.addHandler(console)
        log.propagate = False  # TensorFlow, or a package below it, adds a handler to the root when it first logs
    try:
        yield
    finally:
        _by_packages.update(set(root.handlers) - before)
        log.removeHandler(console)
        log.propagate = propagate
        log.setLevel(level)
        for handler in consoles:
            handler.removeFilter(quiet)


def shows_progress() -> bool:
    """Whether the console shows Scena's log at level info, so that a progress bar is welcome too."""
    log, root = logging.getLogger("scena"), logging.getLogger()
    if any(isinstance(handler, ConsoleHandler) for handler in log.handlers):
        return log.isEnabledFor(logging.INFO)
    return log.isEnabledFor(logging.INFO) and log.propagate and bool(root.handlers) and root.level <= logging.INFO


def in_notebook() -> bool:
    """Whether the program is a notebook or an IPython session."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


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
    silence_others()


def silence_others() -> None:
    """Shows only the errors of noisy packages."""
    for noisy in ("tensorflow", "absl", "h5py"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
