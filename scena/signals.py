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


class _SignalStack(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]


@contextmanager
def own_signal_stack() -> Iterator[None]:
    """Puts back the memory on which this thread handles signals, after native code that replaces it.

    OpenVINO does so for each model, and puts back what it found when the model ends: of two models in one thread, the memory of the first
    may be gone by then, and the next signal would end the process.
    """
    before = _SignalStack()
    _LIBC.sigaltstack(None, ctypes.byref(before))
    try:
        yield
    finally:
        _LIBC.sigaltstack(ctypes.byref(before), None)


def end_with_parent(parent: int, number: int = signal.SIGTERM) -> None:
    """In a new child process: lets the system send it a signal when its parent ends, however that ends. If it ended before this
    call, the child exits at once.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(128 + number)
