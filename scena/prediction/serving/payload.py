"""Between HTTP bodies and samples: JSON as TensorFlow Serving has it, and files."""

import base64
from io import BytesIO
from typing import Any

import msgspec
import numpy as np

from scena.data.sample import Sample
from scena.data.spec import ArraySpec, describe

MAX_PIXELS = 50_000_000
"""A small file can unfold to a huge picture."""


class PayloadError(ValueError):
    """A body is not what the service expects; the message goes to the client."""


def parse_json(body: bytes) -> tuple[list[Any], bool]:
    """The instances of a request, and whether they came in columns.

    `{"instances": [{"x": …}, …]}` has a row for each sample; `{"inputs": {"x": […]}}` has a column for each input.
    """
    try:
        request = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
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


class UploadedFile(BytesIO):
    """A file in memory that messages show by its name."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name

    def __repr__(self) -> str:
        return self.name


def file_of_json(instance: Any) -> bytes | None:
    """The content of a file that came as `{"b64": "…"}`, as TensorFlow Serving writes binary values; None for other instances."""
    if not isinstance(instance, dict) or set(instance) != {"b64"}:
        return None
    try:
        return base64.b64decode(instance["b64"], validate=True)
    except (ValueError, TypeError) as error:
        raise PayloadError(f'"b64" is not base64: {error}') from error


def sample_of_json(instance: Any, specs: dict[str, ArraySpec]) -> Sample:
    """A sample from one instance: an object with a value for each input of the model; a single input may go without its name."""
    if not isinstance(instance, dict) and len(specs) == 1:
        instance = {next(iter(specs)): instance}
    if not isinstance(instance, dict) or set(instance) != set(specs):
        # nothing else is handed on: a text could be a path to a processor, which is not for a client to choose
        raise PayloadError(f'An instance has exactly the keys {sorted(specs)}, or it is a file: {{"b64": "…"}}.')
    return Sample(inputs={name: _array(name, instance[name], spec) for name, spec in specs.items()})


def sample_of_file(content: bytes, name: str, specs: dict[str, ArraySpec], processed: bool) -> Sample:
    """A sample from a file.

    Args:
        content: the file.
        name: its name, kept in the sample's meta.
        specs: the inputs of the model.
        processed: the scenario has processors for prediction: they get the file as they would get a path. Otherwise it is read as a
            picture and brought to the size of the model's input.
    """
    if processed:
        return Sample(inputs=UploadedFile(content, name), meta={"file": name})
    return Sample(inputs=_picture(content, specs), meta={"file": name})


def plain(value: Any) -> Any:
    """Arrays and numpy numbers as JSON values."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist() if value.dtype.kind in "biuf" else plain(value.tolist())
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _array(name: str, value: Any, spec: ArraySpec) -> np.ndarray:
    expected = f"expected shape={spec.shape}, dtype={spec.dtype.name}"
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise PayloadError(f"The lists of the input {name!r} have different lengths; {expected}.") from error
    try:
        return spec.conform(array.astype(spec.dtype) if spec.dtype.kind == "f" and array.dtype.kind in "iuf" else array)
    except (ValueError, TypeError, OverflowError) as error:
        reason = "" if str(error) in ("shape", "dtype") else f": {error}"
        raise PayloadError(
            f"An instance does not match the input {name!r}: {expected}; received {describe(array)}{reason}."
        ) from error


def _picture(content: bytes, specs: dict[str, ArraySpec]) -> dict[str, np.ndarray]:
    from PIL import Image

    name, spec = next(iter(specs.items()))
    channels = spec.shape[-1] if spec.rank == 3 else 1
    if len(specs) != 1 or spec.rank not in (2, 3) or channels not in (1, 3, 4):
        raise PayloadError(
            "This model does not take pictures: its scenario has no processor that reads a file. Send JSON."
        )
    try:
        with Image.open(BytesIO(content)) as file:
            if file.width * file.height > MAX_PIXELS:
                raise PayloadError(f"The picture has {file.width} × {file.height} pixels, more than {MAX_PIXELS}.")
            image = file.convert({1: "L", 3: "RGB", 4: "RGBA"}[int(channels)])
    except PayloadError:
        raise
    except Exception as error:  # a broken file can raise nearly anything
        raise PayloadError(f"The file is not a picture: {error}") from error
    height, width = spec.shape[:2]
    array = np.asarray(image.resize((width or image.width, height or image.height)))
    return {name: array.reshape(*array.shape[:2], *spec.shape[2:]).astype(spec.dtype)}
