"""The routes of the service, as TensorFlow Serving names them, and their limits."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from scena.data.errors import DataError
from scena.data.sample import Sample
from scena.prediction.serving.batcher import Batcher, ClosedError, QueueFullError
from scena.prediction.serving.page import PAGE, docs_page
from scena.prediction.serving.params import ServeParams
from scena.prediction.serving.payload import PayloadError, UploadedFile, parse_json, plain


class Application(FastAPI):
    """Answers predictions directly; all else goes through FastAPI.

    Its middleware and its search for a route cost more than a small network, and a prediction needs neither.

    Args:
        service: answers the predictions.
        more: the arguments of FastAPI.
    """

    def __init__(self, service: "Service", **more: Any) -> None:
        super().__init__(**more)
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == self.service.address:
            response = await self.service.predict(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class RefusedError(Exception):
    """A request that is answered with an error: (status, message)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Service:
    """Everything the routes need.

    Args:
        predictor: predicts the samples.
        params: limits and names.
        name: the model's name in addresses.
    """

    def __init__(self, predictor: Any, params: ServeParams, name: str) -> None:
        self.predictor = predictor
        self.params = params
        self.name = name
        self.address = f"/v1/models/{name}:predict"
        self.specs = predictor.data.input_layer_specs()
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
        waiting = Gauge("scena_waiting_samples", "Samples that wait for their turn", registry=self.registry)
        waiting.set_function(lambda: self.batcher.waiting)

    async def predict(self, request: Request) -> Response:
        """Answers one request; every error becomes a status with a message."""
        started = time.perf_counter()
        try:
            response = Response(msgspec.json.encode(await self._answer(request)), media_type="application/json")
        except RefusedError as refusal:
            response = _error(refusal.status, str(refusal))
        except ClientDisconnect:
            response = _error(400, "The client went away.")
        self.requests.labels(response.status_code).inc()
        self.seconds.observe(time.perf_counter() - started)
        return response

    async def _answer(self, request: Request) -> dict[str, Any]:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await self._body(request)
        columns = False
        try:
            if kind == "multipart/form-data":
                uploads = await _uploads(request, body)
                samples = [self.predictor.sample_from_file(content, name) for name, content in uploads]
            elif kind.startswith("image/") or kind == "application/octet-stream":
                samples = [self.predictor.sample_from_file(body, "upload")]
            else:
                instances, columns = parse_json(body)
                samples = [self.predictor.sample_from_json(instance) for instance in instances]
        except ValueError as error:
            raise RefusedError(400, str(error)) from error
        return self._shaped([plain(sample.outputs) for sample in await self._predicted(samples)], columns)

    def _predict_batch(self, samples: Sequence[Sample]) -> list[Sample]:
        for sample in samples:
            if isinstance(sample.inputs, UploadedFile):
                sample.inputs.seek(0)  # it may have been read before, in a batch that failed because of another sample
        return list(self.predictor.predict_raw(list(samples)))

    async def _predicted(self, samples: list[Sample]) -> list[Sample]:
        try:
            async with asyncio.timeout(self.params.time_limit):
                answer: asyncio.Future[list[Sample]] = asyncio.get_running_loop().create_future()
                return await self.batcher.submit(samples, answer)
        except QueueFullError:
            raise RefusedError(
                429, f"More than {self.params.max_queue} samples wait already; try again later."
            ) from None
        except ClosedError:
            raise RefusedError(503, "The service is being shut down.") from None
        except TimeoutError:
            raise RefusedError(504, f"There was no answer within {self.params.time_limit:g} seconds.") from None
        except DataError as error:
            raise RefusedError(422, str(error)) from error
        except Exception as error:
            raise RefusedError(500, f"The prediction failed: {type(error).__name__}: {error}") from error

    async def _body(self, request: Request) -> bytes:
        limit = self.params.max_body
        if int(request.headers.get("content-length") or 0) > limit:
            raise RefusedError(413, f"The request is larger than {limit} bytes.")
        pieces, size = [], 0
        try:
            async with asyncio.timeout(self.params.body_timeout):
                async for piece in request.stream():
                    size += len(piece)
                    if size > limit:
                        raise RefusedError(413, f"The request is larger than {limit} bytes.")
                    pieces.append(piece)
        except TimeoutError:
            raise RefusedError(
                408, f"The request did not arrive within {self.params.body_timeout:g} seconds."
            ) from None
        return b"".join(pieces)

    def _shaped(self, outputs: list[Any], columns: bool) -> dict[str, Any]:
        """As TensorFlow Serving shapes its answers: a single output goes without its name."""
        if columns:
            names = list(outputs[0]) if isinstance(outputs[0], dict) else []
            table = {name: [output[name] for output in outputs] for name in names}
            return {"outputs": next(iter(table.values())) if len(table) == 1 else table or outputs}
        single = all(isinstance(output, dict) and len(output) == 1 for output in outputs)
        return {"predictions": [next(iter(output.values())) for output in outputs] if single else outputs}

    def metadata(self) -> dict[str, Any]:
        """Names, shapes and types of inputs and outputs."""
        model = self.predictor.built.prediction_model
        described = {
            "inputs": {name: {"shape": [None, *spec.shape], "dtype": spec.dtype.name} for name, spec in self.specs.items()},
            "outputs": {name: {"shape": list(tensor.shape), "dtype": str(tensor.dtype)} for name, tensor in model.output.items()},
        }  # fmt: skip
        return {
            "model_spec": {"name": self.name, "signature_name": "serving_default", "version": "1"},
            "metadata": {"signature_def": {"serving_default": described}},
        }


def create_app(predictor: Any, params: ServeParams, name: str) -> FastAPI:
    """The service as an ASGI application.

    Args:
        predictor: predicts the samples.
        params: limits.
        name: the model's name in addresses.
    """
    service = Service(predictor, params, name)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.batcher.notify = asyncio.get_running_loop().call_soon_threadsafe
        yield
        await asyncio.to_thread(service.batcher.close)

    app = Application(service, title=f"Scena: {name}", lifespan=lifespan, docs_url=None, redoc_url=None)

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(PAGE.replace("MODEL_NAME", name), headers={"Content-Security-Policy": _POLICY})

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()), headers={"Content-Security-Policy": _POLICY})

    @app.get("/health", summary="Whether the service runs")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics", summary="Counts and times for Prometheus")
    async def metrics() -> Response:
        return Response(generate_latest(service.registry), media_type=CONTENT_TYPE_LATEST)

    @app.get(f"/v1/models/{name}", summary="The state of the model")
    async def state() -> dict[str, Any]:
        status = {"error_code": "OK", "error_message": ""}
        return {"model_version_status": [{"version": "1", "state": "AVAILABLE", "status": status}]}

    @app.get(f"/v1/models/{name}/metadata", summary="Inputs and outputs of the model")
    async def metadata() -> dict[str, Any]:
        return service.metadata()

    @app.exception_handler(404)
    async def missing(request: Request, error: Exception) -> Response:
        return _error(
            404,
            f"There is no {request.url.path} here. The model answers POST {service.address}; /docs lists everything.",
        )

    app.router.routes.append(Route(service.address, service.predict, methods=["POST"]))
    app.openapi()["paths"][service.address] = {"post": _PREDICT}
    return app


_POLICY = "default-src 'self' 'unsafe-inline'; img-src 'self' blob: data:"
_PREDICT = {
    "summary": "Predict: JSON, a file as the body, or a form with files",
    "responses": {"200": {"description": "The outputs of each sample"}, "4XX": {"description": "What was wrong"}},
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {"instances": {"type": "array", "items": {}}, "inputs": {"type": "object"}},
                }
            },
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {"schema": {"type": "object"}},
        },
    },
}


async def _uploads(request: Request, body: bytes) -> list[tuple[str, bytes]]:
    request._body = body  # read already, within its limits
    try:
        async with request.form() as form:
            values = [value for _, value in form.multi_items() if not isinstance(value, str)]
            files = [(str(value.filename), await value.read()) for value in values]
    except Exception as error:  # starlette and its parser turn what they meet into several kinds
        raise PayloadError(f"The form cannot be read: {getattr(error, 'detail', error)}") from error
    if not files:
        raise PayloadError("The form holds no file.")
    return files


def _error(status: int, message: str) -> Response:
    headers = {"Retry-After": "1"} if status in (429, 503) else {}
    return Response(msgspec.json.encode({"error": message}), status, headers, "application/json")
