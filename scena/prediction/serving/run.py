"""Runs the service until a signal stops it."""

import logging
import signal
import socket
from typing import Any

import numpy as np

from scena.data.sample import Batch, Cursor
from scena.errors import ScenaError
from scena.prediction.params import ServeParams
from scena.prediction.serving.signature import ServedModel

logger = logging.getLogger(__name__)


def serve(predictor: Any, params: ServeParams, model: ServedModel) -> None:
    """Serves a predictor over HTTP until SIGINT or SIGTERM; running requests are answered before it ends."""
    server = create_server(predictor, params, model)
    warm_up(predictor)
    listener = _listen(params)
    host, port = listener.getsockname()[:2]
    name = model.name
    logger.info("Serving %s at http://%s:%d (POST /v1/models/%s:predict); stop with Ctrl-C.", name, host, port, name)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # uvicorn shuts down, then raises the signal again
    server.run(sockets=[listener])
    logger.info("The service has ended.")


def create_server(predictor: Any, params: ServeParams, model: ServedModel) -> Any:
    """The service as a `uvicorn.Server` that does not listen yet.

    Args:
        predictor: answers the requests.
        params: the limits.
        model: the names of the model.
    """
    try:
        import uvicorn

        from scena.prediction.serving.app import create_app
        from scena.prediction.serving.protocol import DrainingServer, timed_protocol
    except ImportError as error:
        raise ScenaError(f"Serving needs more packages ({error.name}): pip install 'scena[serve]'.") from error
    config = uvicorn.Config(
        create_app(predictor, params, model),
        http=timed_protocol(params.body_timeout),
        port=params.port,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=params.shutdown_time,
    )
    return DrainingServer(config)


def warm_up(predictor: Any) -> None:
    """Predicts a sample of zeros, so that the first request does not wait for tracing."""
    inputs = {
        name: np.zeros((1, *(size or 1 for size in spec.shape)), spec.dtype)
        for name, spec in predictor.data.input_layer_specs().items()
    }
    try:
        predictor.predict_batch(Batch(inputs, {}, [None], 1, Cursor()))
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
