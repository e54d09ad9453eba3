"""Runs the service until a signal stops it: connections with a timeout for the head of a request, and a shutdown that answers requests
on their way.
"""

import asyncio
import logging
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scena.data.sample import Batch, Cursor
from scena.errors import ScenaError
from scena.prediction.params import ServeParams
from scena.prediction.serving.app import create_app
from scena.prediction.serving.reload import Reloader, look
from scena.prediction.serving.signature import ServedModel

logger = logging.getLogger(__name__)

_ANSWER = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n"
    b"The head of the request did not arrive in time."
)
LINGER = 0.5
"""Seconds that a connection without a request stays open at shutdown: bytes may be on their way."""


def serve(load: Callable[[], tuple[Any, ServedModel]], params: ServeParams, directories: Sequence[Path] = ()) -> None:
    """Serves a predictor over HTTP until SIGINT or SIGTERM; running requests are answered before it ends.

    Args:
        load: opens the model.
        params: where to listen, and so on.
        directories: the exports that it opens; they are watched, and opened again when they are replaced.
    """
    stamp = look(directories)
    predictor, model = load()
    server = create_server(predictor, params, model)
    warm_up(predictor)
    listener = _listen(params)
    host, port = listener.getsockname()[:2]
    name, scheme = model.name, "http" if params.tls_cert is None else "https"
    logger.info(
        "Serving %s at %s://%s:%d (POST /v1/models/%s:predict); stop with Ctrl-C.", name, scheme, host, port, name
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # uvicorn shuts down, then raises the signal again
    application: Any = server.config.app

    def load_again() -> tuple[Any, ServedModel]:
        predictor, model = load()
        warm_up(predictor)
        return predictor, model

    reloader = None
    if directories and params.reload:
        put = application.service.replace
        reloader = Reloader(directories, stamp, load_again, lambda loaded: put(*loaded), params.reload)
    server.run(sockets=[listener])
    if reloader is not None:
        reloader.close()
    logger.info("The service has ended.")


def create_server(predictor: Any, params: ServeParams, model: ServedModel) -> uvicorn.Server:
    """The service as a `uvicorn.Server` that does not listen yet."""
    config = uvicorn.Config(
        create_app(predictor, params, model),
        http=timed_protocol(params.body_timeout),
        port=params.port,
        log_level="warning",
        access_log=False,
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=params.shutdown_time,
        ssl_certfile=params.tls_cert,
        ssl_keyfile=params.tls_key,
    )
    return DrainingServer(config)


def warm_up(predictor: Any) -> None:
    """Predicts a sample of zeros, so that the first request does not wait for tracing, and lets runtimes choose how calls are fastest."""
    inputs = {
        name: np.zeros((1, *(size or 1 for size in spec.shape)), spec.dtype)
        for name, spec in predictor.data.input_layer_specs().items()
    }
    try:
        predictor.predict_batch(Batch(inputs, {}, [None], 1, Cursor()))
        predictor.prepare_service(inputs)
    except Exception as error:  # a model may refuse an empty sample; the first request reports real errors
        logger.debug("warming up: %s", error)


def _listen(params: ServeParams) -> socket.socket:
    family = socket.AF_INET6 if ":" in params.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((params.host, params.port))
    except OSError as error:
        listener.close()
        raise ScenaError(
            f"Cannot listen on {params.host}:{params.port}: {error.strerror or error}. Choose another --port or --host."
        ) from error
    listener.listen(1024)
    return listener


class DrainingServer(uvicorn.Server):
    """Answers requests that clients have sent before the shutdown.

    uvicorn drops connections that the system has accepted but the event loop has not seen, and those whose request is still
    on its way.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the service."""
        protocol: Any = self.config.http_protocol_class
        protocol.ending = True
        latest = time.monotonic() + LINGER
        while _waiting(sockets or []) and time.monotonic() < latest:
            await asyncio.sleep(0)  # uvloop takes over one connection each time
        await super().shutdown(sockets)


def _waiting(sockets: list[socket.socket]) -> bool:
    """Whether there are connections that the system has accepted and the event loop has not seen."""
    poll = select.poll()
    for listener in sockets:
        poll.register(listener, select.POLLIN)
    return bool(poll.poll(0))


def timed_protocol(seconds: float) -> type[asyncio.Protocol]:
    """uvicorn's protocol, with a limit for the seconds between the first byte of a request (or the connection) and its last header.

    A slower client gets status 408, and its connection is closed.
    """

    class TimedProtocol(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        ending = False

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start()
            if self.ending:
                self.shutdown()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._timer is None:
                self._start()

        def on_headers_complete(self) -> None:
            self._stop()
            super().on_headers_complete()
            if self.ending and self.cycle is not None:
                self.cycle.keep_alive = False

        def shutdown(self) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.loop.call_later(LINGER, self._end, 3)
            else:
                super().shutdown()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _end(self, rounds: int) -> None:
            if rounds:  # a busy event loop runs timers before it reads what arrived long ago
                self.loop.call_soon(self._end, rounds - 1)
            else:
                super().shutdown()

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
