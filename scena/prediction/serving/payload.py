"""From HTTP bodies to samples: JSON in the format of TensorFlow Serving, forms, and files."""

import base64
import math
import re
import threading
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple

import msgspec
import numpy as np

from scena.data.image.augment.processor import decode_image
from scena.data.sample import Sample
from scena.data.spec import ArraySpec, describe

_NUMBERS = (int, float, type(None))
SMALL = 20_000
"""Bytes and pixels of an image that is decoded in less time than another thread needs to begin."""
MAX_PARTS = 1000
"""Fields of one form."""


class PayloadError(ValueError):
    """A body is not what the service expects; the message goes to the client."""


class TooManyPixelsError(ValueError):
    """The images of a request are too large together."""


class AbandonedError(RuntimeError):
    """The client no longer waits."""


class FormPart(NamedTuple):
    """A field of a form: a file, or a text if it has no file name."""

    field: str
    file: str | None
    content: bytes


class UploadedFile(BytesIO):
    """A file in memory that messages show by its name."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name

    def __repr__(self) -> str:
        return self.name


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
    _counted: float | None = None

    def is_small(self) -> bool:
        """Whether there is only a small image to decode."""
        return len(self.files) == 1 and len(self.files[0]) <= SMALL and self._pixels() <= SMALL

    def make(self, max_pixels: int, abandoned: threading.Event | None = None) -> list[Sample | Exception]:
        """The samples, with an exception in place of each that cannot be created. The pixels of all images are counted before
        anything is decoded; `abandoned` is set when the client no longer waits.
        """
        if self._pixels(abandoned, max_pixels) > max_pixels:
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

    def _pixels(self, abandoned: threading.Event | None = None, limit: float = math.inf) -> float:
        """The pixels of all images, or of as many as exceed the limit."""
        if self._counted is None:
            counted = 0.0
            for content in self.files:
                _check(abandoned)
                counted += _pixels(content)
                if counted > limit:
                    break
            self._counted = counted
        return self._counted


def _check(abandoned: threading.Event | None) -> None:
    if abandoned is not None and abandoned.is_set():
        raise AbandonedError


def _pixels(content: bytes) -> float:
    """The number of pixels of a file, from its header alone; 0 if it is not an image."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(BytesIO(content)) as file:
                return file.width * file.height * int(getattr(file, "n_frames", 1))
    except Image.DecompressionBombError:
        return math.inf
    except Exception:  # not an image, or a broken one: the reader reports it
        return 0


def read_request(content_type: str, body: bytes, predictor: Any) -> SampleRequest:
    """Parses a body, by its content type: JSON, a form with files and values, or a file."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return _of_form(_form_parts(content_type, body), predictor)
    if kind.startswith("image/") or kind == "application/octet-stream":
        return SampleRequest([partial(predictor.sample_from_file, body, "upload")], [body])
    instances, columns = _instances(body)
    makers = [partial(predictor.sample_from_json, instance) for instance in instances]
    return SampleRequest(makers, [file for instance in instances for file in _files_of_json(instance)], columns)


# ---- JSON ------------------------------------------------------------------------------------------------------------


def _instances(body: bytes) -> tuple[list[Any], bool]:
    """The instances of a request, and whether they came in columns.

    `{"instances": [{"x": …}, …]}` has a row for each sample; `{"inputs": {"x": […]}}` has a column for each input.
    """
    try:
        request = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"The body is not JSON: {error}") from error
    if not isinstance(request, dict) or ("instances" in request) == ("inputs" in request):
        raise PayloadError('Expected {"instances": [{"NAME": VALUE, …}, …]} or {"inputs": {"NAME": [VALUE, …], …}}.')
    if "instances" in request:
        instances = request["instances"]
        if not isinstance(instances, list) or not instances:
            raise PayloadError('"instances" must be a list with at least one sample.')
        return instances, False
    columns = request["inputs"]
    if not isinstance(columns, dict) or not all(isinstance(column, list) for column in columns.values()):
        raise PayloadError('"inputs" must be an object with a list for each input.')
    if len({len(column) for column in columns.values()}) != 1 or not next(iter(columns.values())):
        raise PayloadError('The lists in "inputs" must have the same length, at least 1.')
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], True


def _files_of_json(instance: Any) -> list[bytes]:
    """The files in one instance: the instance itself, or values of its inputs, as `{"b64": "…"}`."""
    if not isinstance(instance, dict):  # most instances hold numbers only
        return []
    try:
        content = file_of_json(instance)
        found = [content] if content is not None else [file_of_json(value) for value in instance.values()]
    except PayloadError:
        return []  # its sample reports it
    return [content for content in found if content is not None]


def file_of_json(value: Any) -> bytes | None:
    """The content of a file that came as `{"b64": "…"}`, as TensorFlow Serving writes binary values; None for other values."""
    if not isinstance(value, dict) or set(value) != {"b64"}:
        return None
    try:
        return base64.b64decode(value["b64"], validate=True)
    except (ValueError, TypeError) as error:
        raise PayloadError(f'"b64" is not base64: {error}') from error


def fields_of_json(instance: Any, specs: dict[str, ArraySpec]) -> dict[str, Any]:
    """The inputs of one instance, files as `UploadedFile`; a single input needs no name."""
    if not isinstance(instance, dict) and len(specs) == 1:
        instance = {next(iter(specs)): instance}
    if not isinstance(instance, dict):
        raise PayloadError(_keys_of(specs))
    # a column named "price (EUR)" is an input named "price__EUR_"
    instance = {name if name in specs else re.sub(r"\W", "_", name): value for name, value in instance.items()}
    if set(instance) != set(specs):
        # other keys are refused: a processor could take a text for a path, which a client must not choose
        wrong = {"Missing": specs.keys() - instance.keys(), "Unknown": instance.keys() - specs.keys()}
        raise PayloadError(
            " ".join([_keys_of(specs), *(f"{kind}: {sorted(keys)}." for kind, keys in wrong.items() if keys)])
        )
    contents = {name: file_of_json(value) for name, value in instance.items()}
    return {
        name: value if (content := contents[name]) is None else UploadedFile(content, name)
        for name, value in instance.items()
    }


def _keys_of(specs: dict[str, ArraySpec]) -> str:
    return f'An instance has exactly the keys {sorted(specs)}, or it is a file: {{"b64": "…"}}.'


# ---- forms -----------------------------------------------------------------------------------------------------------


def _form_parts(content_type: str, body: bytes) -> list[FormPart]:
    from python_multipart import FormParser
    from python_multipart.multipart import parse_options_header

    parts: list[FormPart] = []
    ended = threading.Event()

    def add(part: FormPart) -> None:
        if len(parts) == MAX_PARTS:
            raise PayloadError(f"it has more than {MAX_PARTS} fields")
        parts.append(part)

    def add_file(file: Any) -> None:
        file.file_object.seek(0)
        add(FormPart(_text(file.field_name), _text(file.file_name), file.file_object.read()))

    try:
        parser = FormParser(
            "multipart/form-data",
            lambda field: add(FormPart(_text(field.field_name), None, field.value or b"")),
            add_file,
            ended.set,
            boundary=parse_options_header(content_type)[1].get(b"boundary"),
            config={"MAX_MEMORY_FILE_SIZE": len(body)},
        )
        parser.write(body)
        parser.finalize()
        if not ended.is_set():
            raise PayloadError("its end is missing")
    except Exception as error:  # the parser raises several kinds
        raise PayloadError(f"The form cannot be read: {error}") from error
    if not parts:
        raise PayloadError("The form holds no file.")
    return parts


def _text(name: bytes | None) -> str:
    return (name or b"").decode("utf-8", "replace")


def _of_form(parts: list[FormPart], predictor: Any) -> SampleRequest:
    fields = _fields_of_form(parts, predictor.data.input_layer_specs())
    files = [part.content for part in parts if part.file is not None]
    if fields is None or all(
        len(values) == 1 and isinstance(next(iter(values.values())), UploadedFile) for values in fields
    ):
        return SampleRequest([partial(predictor.sample_from_file, part.content, part.file) for part in parts], files)
    return SampleRequest([partial(predictor.sample_from_fields, values) for values in fields], files)


def _fields_of_form(parts: list[FormPart], specs: dict[str, ArraySpec]) -> list[dict[str, Any]] | None:
    """The inputs of each sample, if the fields of a form have the names of inputs; None if none has, and each file is a sample.

    Repeated inputs make several samples: the first `left` belongs to the first `right`.
    """
    named = [part for part in parts if part.field in specs]
    other = next((part for part in parts if part.field not in specs), None)
    if not named:
        text = next((part for part in parts if part.file is None), None)
        if text is not None:
            raise PayloadError(
                f"The field {text.field!r} is not a file, and the model has no such input: {sorted(specs)}."
            )
        return None
    if other is not None:
        raise PayloadError(
            f"The model has no input {other.field!r}. Name all fields of the form, or none, as its inputs: {sorted(specs)}."
        )
    columns = {name: [part for part in named if part.field == name] for name in specs}
    if len({len(column) for column in columns.values()}) != 1:
        counts = ", ".join(f"{name!r} {len(column)} times" for name, column in columns.items())
        raise PayloadError(f"Each sample needs all inputs of the model. Received: {counts}.")
    return [
        {name: _form_value(part) for name, part in zip(columns, row, strict=True)}
        for row in zip(*columns.values(), strict=True)
    ]


def _form_value(part: FormPart) -> Any:
    if part.file is not None:
        return UploadedFile(part.content, part.file)
    try:
        return msgspec.json.decode(part.content)
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"The field {part.field!r} is neither a file nor JSON: {error}") from error


# ---- samples ---------------------------------------------------------------------------------------------------------


def sample_of_fields(
    fields: dict[str, Any], specs: dict[str, ArraySpec], processed: bool, decoded: Collection[str] = ()
) -> Sample:
    """A sample from a JSON value or an `UploadedFile` for each input of the model.

    The pipeline gets the bytes of inputs that it decodes (`decoded`). If the scenario has other processors for prediction
    (`processed`), they get open files where their generator would give paths. Otherwise a file is read as an image and resized to its
    input.
    """
    files = {name: value.name for name, value in fields.items() if isinstance(value, UploadedFile)}
    inputs = {
        name: _array(name, fields[name], spec) if name not in files
        else fields[name].getvalue() if name in decoded
        else fields[name] if processed
        else _image(fields[name], name, spec)
        for name, spec in specs.items()
    }  # fmt: skip
    return Sample(inputs=inputs, meta={"file": files} if files else None)


def sample_of_file(
    content: bytes, name: str, specs: dict[str, ArraySpec], processed: bool, decoded: Collection[str] = ()
) -> Sample:
    """A sample from a single file, which is handled as in `sample_of_fields`; its name is kept in the sample's meta."""
    file = UploadedFile(content, name)
    if processed and not (len(specs) == 1 and specs.keys() <= set(decoded)):
        return Sample(inputs=file, meta={"file": name})
    if len(specs) != 1:
        raise PayloadError(
            f"The model has several inputs: name the fields of a form, or the keys of an instance, {sorted(specs)}."
        )
    (key, spec), *_ = specs.items()
    return Sample(inputs={key: content if key in decoded else _image(file, key, spec)}, meta={"file": name})


def _array(name: str, value: Any, spec: ArraySpec) -> np.ndarray:
    expected = f"expected shape={spec.shape}, dtype={spec.dtype.name}"
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise PayloadError(f"The lists of the input {name!r} have different lengths; {expected}.") from error
    if spec.dtype.kind == "f" and array.dtype == object and all(type(item) in _NUMBERS for item in array.flat):
        array = array.astype(spec.dtype)  # null, a missing number, becomes NaN
    received = describe(array) if array.ndim else msgspec.json.encode(value).decode()
    try:
        return spec.conform(array.astype(spec.dtype) if spec.dtype.kind == "f" and array.dtype.kind in "iuf" else array)
    except (ValueError, TypeError, OverflowError) as error:
        reason = "" if str(error) in ("shape", "dtype") else f": {error}"
        raise PayloadError(
            f"An instance does not match the input {name!r}: {expected}; received {received}{reason}."
        ) from error


def _image(file: "UploadedFile", name: str, spec: ArraySpec) -> np.ndarray:
    from PIL import Image

    channels = int(spec.shape[-1] or 0) if spec.rank == 3 else 1
    if spec.rank not in (2, 3) or channels not in (1, 3, 4):
        raise PayloadError(
            f"The input {name!r} takes no images, and the scenario has no processor that reads a file. Send JSON."
        )
    try:
        if channels == 4:
            with Image.open(file) as opened:
                image = opened.convert("RGBA")
        else:
            array = decode_image(file.getvalue(), channels)
            image = Image.fromarray(array if channels == 3 else array[..., 0])
    except Exception as error:  # a broken file can raise nearly anything
        raise PayloadError(f"The file {file.name!r} is not an image: {error}") from error
    height, width = spec.shape[:2]
    array = np.asarray(image.resize((width or image.width, height or image.height)))
    return array.reshape(*array.shape[:2], *spec.shape[2:]).astype(spec.dtype)
