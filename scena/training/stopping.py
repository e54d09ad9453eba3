"""Stopping a training cleanly: on SIGTERM or SIGINT, or at its time limit."""

import logging
import signal
import sys
import time
from contextlib import AbstractContextManager
from types import FrameType

from scena.signals import noticing_stop_signals

logger = logging.getLogger(__name__)

TIME_IS_UP = 75
"""The exit status at the time limit: EX_TEMPFAIL of sysexits.h, so that a job script can tell it from an error."""


class StopRequested(BaseException):
    """Ends the training loop between two steps or in a validation; the state can be saved.

    Derives from BaseException so that `except Exception` does not swallow it.
    """


class StopRequests:
    """Requests to end the training: by a signal, another worker, or the time limit in seconds."""

    def __init__(self, time_limit: float | None = None) -> None:
        self._signal: int | None = None
        self._asked: str | None = None
        self._finishing = False
        self._end = None if time_limit is None else time.monotonic() + time_limit

    @property
    def reason(self) -> str | None:
        """Why the training should end; None if it should not."""
        if self._signal is not None:
            return signal.Signals(self._signal).name
        if self._asked is not None:
            return self._asked
        return "the time limit" if self._end is not None and time.monotonic() >= self._end else None

    @property
    def exit_status(self) -> int:
        """128 + the number of the signal, as in shells, or 75 for the time limit."""
        if self._signal is None:
            return TIME_IS_UP if self._asked is None else 128 + signal.SIGTERM
        return 128 + self._signal

    def ask(self, reason: str) -> None:
        """Requests the end of the training, as a signal would."""
        self._asked = reason

    def check(self) -> None:
        """Raises StopRequested if the training should end."""
        if self.reason is not None:
            raise StopRequested

    def finishing(self) -> None:
        """Notes that the last step is taken: what is left to do is done whatever is requested."""
        self._finishing = True

    def listening(self) -> AbstractContextManager[None]:
        """Handles the signals while the block runs."""
        return noticing_stop_signals(self._notice)

    def _notice(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._signal = number
        # a second signal must end the process even inside a long operation, so the system handles it, not Python
        interactive = hasattr(sys, "ps1") or "ipykernel" in sys.modules
        for again in (signal.SIGTERM, signal.SIGINT):
            signal.signal(again, signal.default_int_handler if interactive else signal.SIG_DFL)
        what = (
            "the training is finished, and its exports are being written"
            if self._finishing
            else "the training ends after this step and its state is saved"
        )
        logger.warning("%s: %s. A second signal ends it at once.", signal.Signals(number).name, what)
