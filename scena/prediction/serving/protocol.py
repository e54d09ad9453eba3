"""Connections that do not wait forever: the head of a request has to arrive in time, as its body does."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_ANSWER = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n"
    b"The head of the request did not arrive in time."
)


def timed_protocol(seconds: float) -> type[asyncio.Protocol]:
    """uvicorn's protocol, with a limit for the time between the first byte of a request (or the connection) and its last header.

    Args:
        seconds: the limit; who takes longer gets status 408, and the connection is closed.
    """

    class TimedProtocol(HttpToolsProtocol):
        """Counts the time of each head."""

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._timer is None:
                self._start()

        def on_headers_complete(self) -> None:
            self._stop()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _start(self) -> None:
            self._timer = self.loop.call_later(seconds, self._give_up)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _give_up(self) -> None:
            self._timer = None
            if not self.transport.is_closing():
                self.transport.write(_ANSWER)
                self.transport.close()

    return TimedProtocol
