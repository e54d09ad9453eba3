"""The routes of the service, named as in TensorFlow Serving, and their limits."""

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from scena import __version__
from scena.data.sample import Sample
from scena.prediction.params import ServeParams
from scena.prediction.serving.access import OPEN, is_allowed, read_tokens
from scena.prediction.serving.answers import RefusedError, answer_of, refusal
from scena.prediction.serving.batcher import Batcher, ClosedError, QueueFullError
from scena.prediction.serving.page import docs_page, model_page
from scena.prediction.serving.payload import SampleRequest, TooManyPixelsError, UploadedFile, read_request
from scena.prediction.serving.signature import ServedModel, Signature, schema_of


class Application(FastAPI):
    """Handles predictions directly, everything else through FastAPI.

    FastAPI's middleware and routing cost more than a small network, and a prediction needs neither.
    """

    def __init__(self, service: "Service", tokens: list[bytes], **more: Any) -> None:
        super().__init__(**more)
        self.service = service
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            self._tokens
            and scope["type"] == "http"
            and scope["path"] != OPEN
            and not is_allowed(self._tokens, scope["headers"])
        ):
            await self.service.refuse_stranger()(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == self.service.address:
            response = await self.service.predict(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class Service:
    """State and handlers of the routes."""

    def __init__(self, predictor: Any, params: ServeParams, model: ServedModel) -> None:
        self._decoding = ThreadPoolExecutor(1, "scena-decoding")
        self.params = params
        self.address = f"/v1/models/{model.name}:predict"
        self.version = 0
        self.replace(predictor, model)
        self.registry = CollectorRegistry()
        self.requests = Counter("scena_requests", "Requests by status", ["status"], registry=self.registry)
        self.seconds = Histogram("scena_request_seconds", "Time to the answer", registry=self.registry)
        sizes = [1, 2, 4, 8, 16, 32, 64, 128, float("inf")]
        self.batches = Histogram("scena_batch_size", "Samples in a batch", buckets=sizes, registry=self.registry)
        self.batcher = Batcher(
            self._predict_batch,
            max_batch=params.max_batch,
            max_delay=params.max_delay / 1000,
            max_queue=params.max_queue,
            observe=self.batches.observe,
        )
        waiting = Gauge("scena_waiting_samples", "Samples in the queue", registry=self.registry)
        waiting.set_function(lambda: self.batcher.waiting)

    def replace(self, predictor: Any, model: ServedModel) -> None:
        """Puts a model into service. The next batch is predicted with it; no request is refused or lost."""
        self.model = model
        self.class_names = list(model.class_names)
        self.signature = Signature(
            predictor.data.input_layer_specs(), predictor.outputs(), self.class_names, predictor.reads_files
        )
        self.version += 1
        self.predictor = predictor

    def refuse_stranger(self) -> Response:
        """The response to a request without a valid token."""
        self.requests.labels(401).inc()
        response = _error(401, "This service needs a token: send the header 'Authorization: Bearer TOKEN'.")
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    def state(self) -> dict[str, Any]:
        """The state of the model, as TensorFlow Serving describes it."""
        status = {"error_code": "OK", "error_message": ""}
        return {"model_version_status": [{"version": str(self.version), "state": "AVAILABLE", "status": status}]}

    def close(self) -> None:
        """Predicts the queued samples, then ends the threads."""
        self._decoding.shutdown()
        self.batcher.close()

    async def predict(self, request: Request) -> Response:
        """Responds to one request; every error becomes a status with a message."""
        started = time.perf_counter()
        try:
            response = Response(msgspec.json.encode(await self._answer(request)), media_type="application/json")
        except RefusedError as refusal:
            response = _error(refusal.status, str(refusal))
        except ClientDisconnect:
            response = _error(400, "The client disconnected.")
        except (
            asyncio.CancelledError
        ):  # by the server at the end of the shutdown time; the client still gets a response
            response = _error(503, "The service ended before the prediction was ready.")
        self.requests.labels(response.status_code).inc()
        self.seconds.observe(time.perf_counter() - started)
        return response

    async def _answer(self, request: Request) -> dict[str, Any]:
        body = await self._body(request)
        try:
            asked = await read_request(request, body, self.predictor)
        except ValueError as error:
            raise RefusedError(400, str(error)) from error
        outcomes = await self._outcomes(asked)
        return answer_of(outcomes, asked.columns, self.class_names)

    async def _outcomes(self, asked: SampleRequest) -> list[Sample | RefusedError]:
        """The outcome of each sample; one that cannot be created does not stop the others."""
        try:
            async with asyncio.timeout(self.params.time_limit):
                made = await self._made(asked)
                samples = [sample for sample in made if isinstance(sample, Sample)]
                answer: asyncio.Future[list[Sample | Exception]] = asyncio.get_running_loop().create_future()
                predicted = iter(await self.batcher.submit(samples, answer) if samples else [])
        except QueueFullError:
            raise RefusedError(
                429, f"More than {self.params.max_queue} samples are queued already; try again later."
            ) from None
        except ClosedError:
            raise RefusedError(503, "The service is being shut down.") from None
        except TimeoutError:
            raise RefusedError(504, f"There was no prediction within {self.params.time_limit:g} seconds.") from None
        except TooManyPixelsError as error:
            raise RefusedError(413, str(error)) from error
        outcomes = [sample if isinstance(sample, Exception) else next(predicted) for sample in made]
        return [refusal(outcome) if isinstance(outcome, Exception) else outcome for outcome in outcomes]

    async def _made(self, asked: SampleRequest) -> list[Sample | Exception]:
        """The samples; files are decoded in a thread, so that other requests do not wait."""
        if not asked.files:
            return asked.make(self.params.max_pixels)
        abandoned = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._decoding, asked.make, self.params.max_pixels, abandoned
            )
        finally:
            abandoned.set()  # a thread cannot be cancelled, but it checks this before each file

    def _predict_batch(self, samples: Sequence[Sample]) -> list[Sample]:
        for sample in samples:
            for value in sample.inputs.values() if isinstance(sample.inputs, dict) else [sample.inputs]:
                if isinstance(value, UploadedFile):
                    value.seek(0)  # it may have been read in a batch that failed because of another sample
        return list(self.predictor.predict_raw(list(samples)))

    async def _body(self, request: Request) -> bytes:
        limit = self.params.max_body
        if int(request.headers.get("content-length") or 0) > limit:
            raise RefusedError(413, f"The request is larger than {limit} bytes.")
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self.params.body_timeout):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > limit:
                        raise RefusedError(413, f"The request is larger than {limit} bytes.")
                    chunks.append(chunk)
        except TimeoutError:
            raise RefusedError(
                408, f"The request did not arrive within {self.params.body_timeout:g} seconds."
            ) from None
        return b"".join(chunks)

    def metadata(self) -> dict[str, Any]:
        """Names, shapes and types of inputs and outputs."""
        described: dict[str, Any] = {
            kind: {name: {"shape": [None, *spec.shape], "dtype": spec.dtype.name} for name, spec in specs.items()}
            for kind, specs in (("inputs", self.signature.inputs), ("outputs", self.signature.outputs))
            if specs
        }
        if self.class_names:
            described["class_names"] = self.class_names
        return {
            "model_spec": {"name": self.model.name, "signature_name": "serving_default", "version": str(self.version)},
            "metadata": {"signature_def": {"serving_default": described}},
        }


def create_app(predictor: Any, params: ServeParams, model: ServedModel) -> FastAPI:
    """The service as an ASGI application."""
    service = Service(predictor, params, model)
    name = model.name

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.batcher.notify = asyncio.get_running_loop().call_soon_threadsafe
        yield
        await asyncio.to_thread(service.close)

    app = Application(
        service,
        read_tokens(params),
        title=f"Scena: {name}",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def page(request: Request) -> HTMLResponse:
        text = model_page(service.model, service.signature, _origin(request, params), service.address)
        return HTMLResponse(text, headers={"Content-Security-Policy": _POLICY})

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi(), name), headers={"Content-Security-Policy": _POLICY})

    @app.get("/health", summary="Health", responses=_answer(_HEALTH))
    async def health() -> dict[str, str]:
        return _HEALTH

    @app.get("/metrics", summary="Metrics for Prometheus", response_class=PlainTextResponse)
    async def metrics() -> Response:
        return Response(generate_latest(service.registry), media_type=CONTENT_TYPE_LATEST)

    @app.get(f"/v1/models/{name}", summary="State of the model", responses=_answer(service.state()))
    async def state() -> dict[str, Any]:
        return service.state()

    @app.get(f"/v1/models/{name}/metadata", summary="Inputs and outputs", responses=_answer(service.metadata()))
    async def metadata() -> dict[str, Any]:
        return service.metadata()

    @app.exception_handler(404)
    async def missing(request: Request, error: Exception) -> Response:
        return _error(
            404,
            f"There is no {request.url.path} here. The model answers POST {service.address}; /docs lists everything.",
        )

    app.router.routes.append(Route(service.address, service.predict, methods=["POST"]))
    app.openapi()["paths"][service.address] = {"post": service.signature.operation()}
    return app


_POLICY = "default-src 'self' 'unsafe-inline'; img-src 'self' blob: data:"
_HEALTH = {"status": "ok"}


def _answer(example: Any) -> dict[int | str, dict[str, Any]]:
    """The description of an answer that is always like this one."""
    return {
        200: {
            "description": "The answer",
            "content": {"application/json": {"schema": schema_of(example), "example": example}},
        }
    }


def _origin(request: Request, params: ServeParams) -> str:
    """Scheme, host and port as the client wrote them; it may be behind a proxy."""
    host = request.headers.get("host", "")
    if not re.fullmatch(r"[a-zA-Z0-9.:_[\]-]+", host):
        host = f"{params.host}:{params.port}"
    return f"{request.url.scheme}://{host}"


def _error(status: int, message: str) -> Response:
    headers = {"Retry-After": "1"} if status in (429, 503) else {}
    return Response(msgspec.json.encode({"error": message}), status, headers, "application/json")
