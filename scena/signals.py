"""Taking notice of the signals that ask a program to end."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def noticing_stop_signals(handler: Handler) -> Iterator[None]:
    """Calls `handler` for SIGINT and SIGTERM while the block runs; elsewhere than in the main thread Python cannot."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
