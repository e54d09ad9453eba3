"""The routes of the service, named as in TensorFlow Serving, and their limits."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from scena.data.sample import Sample
from scena.prediction.class_names import has_one_class, with_class_names
from scena.prediction.params import ServeParams
from scena.prediction.predictor import Predictor
from scena.prediction.runtimes.parallel import available_cores
from scena.prediction.serving.access import OPEN, is_allowed, read_tokens
from scena.prediction.serving.answers import RefusedError, answer_of, refusal
from scena.prediction.serving.asgi import DisconnectedError, Receive, Request, Response, Scope, Send, TooLargeError
from scena.prediction.serving.batcher import Batcher, ClosedError, QueueFullError
from scena.prediction.serving.openapi import describe_json, describe_service, describe_text
from scena.prediction.serving.page import docs_page, model_page
from scena.prediction.serving.payload import SampleRequest, TooManyPixelsError, UploadedFile, read_request
from scena.prediction.serving.signature import ServedModel, Signature


@dataclass(frozen=True)
class Version:
    """A model in service. Whoever reads several of these reads them from one version."""

    number: int
    predictor: Any
    model: ServedModel
    signature: Signature
    reads_as_usual: bool
    """Whether samples are made by `Predictor`; a predictor of a scenario may need any time for that."""

    @classmethod
    def of(cls, number: int, predictor: Any, model: ServedModel) -> "Version":
        """With the signature of the predictor's inputs and outputs."""
        specs = predictor.data.input_layer_specs()
        one_class = has_one_class(predictor.data.target_layer_specs())
        signature = Signature(specs, predictor.outputs(), list(model.class_names), predictor.reads_files, one_class)
        ways = ("sample_from_json", "sample_from_fields", "sample_from_file")
        usual = all(getattr(type(predictor), way, None) is getattr(Predictor, way) for way in ways)
        return cls(number, predictor, model, signature, usual)


class Service:
    """State and handlers of the routes."""

    def __init__(self, predictor: Any, params: ServeParams, model: ServedModel) -> None:
        self._decoding = ThreadPoolExecutor(1, "scena-decoding")
        self.params = params
        self.state_address = f"/v1/models/{model.name}"
        self.address = f"{self.state_address}:predict"
        self.now = Version.of(1, predictor, model)
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
            threads=min(getattr(predictor, "parallel_calls", 1), available_cores()),
        )
        waiting = Gauge("scena_waiting_samples", "Samples in the queue", registry=self.registry)
        waiting.set_function(lambda: self.batcher.waiting)

    def replace(self, predictor: Any, model: ServedModel) -> None:
        """Puts a model into service. The next batch is predicted with it; no request is refused or lost."""
        self.now = Version.of(self.now.number + 1, predictor, model)

    def refuse_stranger(self) -> Response:
        """The response to a request without a valid token."""
        self.requests.labels(401).inc()
        message = "This service needs a token: send the header 'Authorization: Bearer TOKEN'."
        return _error(401, message, **{"WWW-Authenticate": "Bearer"})

    def state(self) -> dict[str, Any]:
        """The state of the model, as TensorFlow Serving describes it."""
        status = {"error_code": "OK", "error_message": ""}
        return {"model_version_status": [{"version": str(self.now.number), "state": "AVAILABLE", "status": status}]}

    def close(self) -> None:
        """Predicts the queued samples, then ends the threads."""
        self._decoding.shutdown()
        self.batcher.close()

    async def predict(self, request: Request) -> Response:
        """Responds to one request; every error becomes a status with a message."""
        started = time.perf_counter()
        try:
            response = _json(await self._answer(request))
        except RefusedError as refusal:
            response = _error(refusal.status, str(refusal))
        except DisconnectedError:
            response = _error(400, "The client disconnected.")
        except (
            asyncio.CancelledError
        ):  # by the server at the end of the shutdown time; the client still gets a response
            response = _error(503, "The service ended before the prediction was ready.")
        self.requests.labels(response.status).inc()
        self.seconds.observe(time.perf_counter() - started)
        return response

    async def _answer(self, request: Request) -> dict[str, Any]:
        body = await self._body(request)
        try:
            asked = read_request(request.headers.get("content-type", ""), body, self.now.predictor)
        except ValueError as error:
            raise RefusedError(400, str(error)) from error
        outcomes = await self._outcomes(asked)
        return answer_of(outcomes, asked.columns)

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
        """The samples. Files are decoded in a thread, so that other requests do not wait; for a small one that would take longer."""
        if not asked.files or (self.now.reads_as_usual and asked.is_small()):
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
        now = self.now  # may be replaced meanwhile: the names of the classes belong to the model that predicts
        predicted = list(now.predictor.predict_raw(list(samples)))
        for sample in predicted:
            names, one_class = now.signature.class_names, now.signature.one_class
            sample.outputs = with_class_names(sample.outputs, names, one_class=one_class)
        return predicted

    async def _body(self, request: Request) -> bytes:
        try:
            async with asyncio.timeout(self.params.body_timeout):
                return await request.body(self.params.max_body)
        except TooLargeError:
            raise RefusedError(413, f"The request is larger than {self.params.max_body} bytes.") from None
        except TimeoutError:
            raise RefusedError(
                408, f"The request did not arrive within {self.params.body_timeout:g} seconds."
            ) from None

    def metadata(self) -> dict[str, Any]:
        """Names, shapes and types of inputs and outputs."""
        now = self.now
        described: dict[str, Any] = {
            kind: {name: {"shape": [None, *spec.shape], "dtype": spec.dtype.name} for name, spec in specs.items()}
            for kind, specs in (("inputs", now.signature.inputs), ("outputs", now.signature.outputs))
            if specs
        }
        if now.signature.class_names:
            described["class_names"] = now.signature.class_names
        return {
            "model_spec": {"name": now.model.name, "signature_name": "serving_default", "version": str(now.number)},
            "metadata": {"signature_def": {"serving_default": described}},
        }

    def openapi(self) -> dict[str, Any]:
        """The routes with the schemas of the model in service."""
        operations = {
            "/health": describe_json("Health", _HEALTH),
            "/metrics": describe_text("Metrics for Prometheus"),
            self.state_address: describe_json("State of the model", self.state()),
            f"{self.state_address}/metadata": describe_json("Inputs and outputs", self.metadata()),
            self.address: {"post": self.now.signature.operation()},
        }
        return describe_service(self.now.model.name, operations)

    def page(self, origin: str) -> str:
        """The page to try the model."""
        now = self.now
        return model_page(now.model, now.signature, origin, self.address)

    def pages(self) -> dict[str, Callable[[Request], Response]]:
        """What GET answers, by path."""
        return {
            "/": lambda request: _html(self.page(_origin(request, self.params))),
            "/docs": lambda _: _html(docs_page(self.openapi(), self.now.model.name)),
            "/openapi.json": lambda _: _json(self.openapi()),
            "/health": lambda _: _json(_HEALTH),
            "/metrics": lambda _: Response(generate_latest(self.registry), CONTENT_TYPE_LATEST),
            self.state_address: lambda _: _json(self.state()),
            f"{self.state_address}/metadata": lambda _: _json(self.metadata()),
        }


class Application:
    """The service as an ASGI application."""

    def __init__(self, service: Service, tokens: list[bytes]) -> None:
        self.service = service
        self._tokens = tokens
        self._pages = service.pages()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            response = await self._respond(Request(scope, receive))
            await response.send(send)

    async def _respond(self, request: Request) -> Response:
        path, method = request.path, request.scope["method"]
        if self._tokens and path != OPEN and not is_allowed(self._tokens, request.scope["headers"]):
            return self.service.refuse_stranger()
        if path == self.service.address:
            if method == "POST":
                return await self.service.predict(request)
            return _error(405, f"{path} takes POST; /docs describes it.", Allow="POST")
        page = self._pages.get(path)
        if page is None:
            address = self.service.address
            return _error(404, f"There is no {path} here. The model answers POST {address}; /docs lists everything.")
        if method not in ("GET", "HEAD"):
            return _error(405, f"{path} takes GET; /docs describes it.", Allow="GET, HEAD")
        return page(request)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self.service.batcher.notify = asyncio.get_running_loop().call_soon_threadsafe
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await asyncio.to_thread(self.service.close)
        await send({"type": "lifespan.shutdown.complete"})


def create_app(predictor: Any, params: ServeParams, model: ServedModel) -> Application:
    """The service as an ASGI application."""
    return Application(Service(predictor, params, model), read_tokens(params))


_POLICY = "default-src 'self' 'unsafe-inline'; img-src 'self' blob: data:"
_HEALTH = {"status": "ok"}


def _origin(request: Request, params: ServeParams) -> str:
    """Scheme, host and port as the client wrote them; it may be behind a proxy."""
    host = request.headers.get("host", "")
    if not re.fullmatch(r"[a-zA-Z0-9.:_[\]-]+", host):
        host = f"{params.host}:{params.port}"
    return f"{request.scope['scheme']}://{host}"


def _json(value: Any, status: int = 200, **headers: str) -> Response:
    return Response(msgspec.json.encode(value), "application/json", status, headers)


def _html(text: str) -> Response:
    return Response(text.encode(), "text/html; charset=utf-8", headers={"Content-Security-Policy": _POLICY})


def _error(status: int, message: str, **headers: str) -> Response:
    if status in (429, 503):
        headers["Retry-After"] = "1"
    return _json({"error": message}, status, **headers)
