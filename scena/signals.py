"""Signals: handling requests to stop, and ending a child process with its parent."""

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded now: not between fork and exec


@contextmanager
def noticing_stop_signals(handler: Handler) -> Iterator[None]:
    """Calls `handler` for SIGINT and SIGTERM while the block runs; does nothing outside the main thread, where Python cannot."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def end_with_parent(parent: int, number: int = signal.SIGTERM) -> None:
    """In a new child process: lets the system send it a signal when its parent ends, however that ends. If it ended before this
    call, the child exits at once.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(128 + number)
