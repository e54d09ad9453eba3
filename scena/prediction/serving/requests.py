"""Parses the body of a request into samples, and limits the size of its images."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request

from scena.data.sample import Sample
from scena.prediction.serving.payload import (
    FormPart,
    PayloadError,
    UploadedFile,
    fields_of_form,
    files_of_json,
    parse_json,
    pixels_of,
)


class TooManyPixelsError(ValueError):
    """The images of a request are too large together."""


class AbandonedError(RuntimeError):
    """The client no longer waits."""


@dataclass
class SampleRequest:
    """The samples of a request.

    Args:
        makers: makes each sample; a ValueError is the client's fault.
        files: the files in it, to count their pixels.
        columns: whether values came in columns; the response then has columns too.
    """

    makers: Sequence[Callable[[], Sample]]
    files: list[bytes]
    columns: bool = False

    def make(self, max_pixels: int, abandoned: threading.Event | None = None) -> list[Sample | Exception]:
        """The samples, with an exception in place of each that cannot be created.

        Args:
            max_pixels: limit on the pixels of all images together; checked before anything is decoded.
            abandoned: set when the client no longer waits.
        """
        pixels = 0.0
        for content in self.files:
            _check(abandoned)
            pixels += pixels_of(content)
            if pixels > max_pixels:
                raise TooManyPixelsError(
                    f"The images of the request have more than {max_pixels} pixels together. Send smaller or fewer ones."
                )
        made: list[Sample | Exception] = []
        for maker in self.makers:
            _check(abandoned)
            try:
                made.append(maker())
            except Exception as error:  # a custom predictor may raise anything
                made.append(error)
        return made


async def read_request(request: Request, body: bytes, predictor: Any) -> SampleRequest:
    """Parses a body: JSON, a form with files and values, or a file.

    Args:
        request: its content type decides.
        body: read already, within its limits.
        predictor: makes the samples.

    Raises:
        PayloadError: the body is none of these.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return _of_form(await _parts(request, body), predictor)
    if kind.startswith("image/") or kind == "application/octet-stream":
        return SampleRequest([partial(predictor.sample_from_file, body, "upload")], [body])
    instances, columns = parse_json(body)
    makers = [partial(predictor.sample_from_json, instance) for instance in instances]
    return SampleRequest(makers, _files(instances), columns)


def _of_form(parts: list[FormPart], predictor: Any) -> SampleRequest:
    fields = fields_of_form(parts, predictor.data.input_layer_specs())
    files = [part.content for part in parts if part.file is not None]
    if fields is None:
        return SampleRequest([partial(predictor.sample_from_file, part.content, part.file) for part in parts], files)
    if all(len(values) == 1 and isinstance(next(iter(values.values())), UploadedFile) for values in fields):
        return SampleRequest([partial(predictor.sample_from_file, part.content, part.file) for part in parts], files)
    return SampleRequest([partial(predictor.sample_from_fields, values) for values in fields], files)


def _files(instances: list[Any]) -> list[bytes]:
    found: list[bytes] = []
    for instance in instances:
        if isinstance(instance, dict):  # a quick look: most instances hold numbers
            try:
                found += files_of_json(instance)
            except PayloadError:
                continue  # its sample reports it
    return found


async def _parts(request: Request, body: bytes) -> list[FormPart]:
    request._body = body
    try:
        async with request.form() as form:
            parts = [
                FormPart(name, None, value.encode())
                if isinstance(value, str)
                else FormPart(name, str(value.filename), await value.read())
                for name, value in form.multi_items()
            ]
    except Exception as error:  # starlette and its parser raise several kinds
        raise PayloadError(f"The form cannot be read: {getattr(error, 'detail', error)}") from error
    if not parts:
        raise PayloadError("The form holds no file.")
    return parts


def _check(abandoned: threading.Event | None) -> None:
    if abandoned is not None and abandoned.is_set():
        raise AbandonedError
