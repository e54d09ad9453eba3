"""An image file as the bytes that go into a record: as it is wherever possible, else cropped, scaled or converted."""

import io
import math
import os
from typing import Any, NamedTuple

from PIL import Image, ImageOps, UnidentifiedImageError

from scena.data.image.params import ImagePreparationParams, Processing
from scena.errors import DataError
from scena.storage.location import read_bytes, reason_of

KEPT_FORMATS = ("JPEG", "PNG")
"""All readers of records decode these alike; anything else is converted to PNG."""
COUNTED_PIXELS = 1 << 15
_ORIENTATION = 0x0112
_PNG_DEPTH = 24  # the byte with the bits of a sample


class UnreadableImageError(DataError):
    """A file that is not an image, or not a whole one."""


class PreparedImage(NamedTuple):
    """An image for a record."""

    data: bytes
    height: int
    width: int
    histogram: list[int]
    """How often each of 256 values occurs, for each channel."""
    changes: list[str]
    """What was done to it; empty if the bytes are those of the file."""


def prepare_image(path: Any, params: ImagePreparationParams, statistics: bool = True) -> PreparedImage:
    """Reads, checks and (if need be) changes one image file; counts its values only for `statistics`.

    Raises UnreadableImageError with the reason, without the name.
    """
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        raise UnreadableImageError("there is no such file") from None
    except OSError as error:
        raise UnreadableImageError(f"it cannot be read ({reason_of(error)})") from None
    return prepare_data(data, params, statistics)


def orientation(data: bytes) -> int:
    """The EXIF orientation of an encoded image; 1, which is upright, if it has none or cannot be read."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # whoever decodes it says what is wrong
        return 1


def prepare_data(data: bytes, params: ImagePreparationParams, statistics: bool = True) -> PreparedImage:
    """The same for the contents of an image file."""
    if not data:
        raise UnreadableImageError("the file is empty")
    try:
        with Image.open(io.BytesIO(data), formats=_formats(data)) as image:
            return _prepared(data, image, params, statistics)
    except UnidentifiedImageError:
        raise UnreadableImageError("it is not an image in a known format") from None
    except Exception as error:  # Pillow's plugins raise whatever a damaged file leads them to
        raise UnreadableImageError(f"it cannot be decoded ({error})") from None


def _formats(data: bytes) -> list[str] | None:
    """The format that the first bytes stand for: trying all formats takes a tenth of the time of decoding."""
    if data[:2] == b"\xff\xd8":
        return ["JPEG"]
    return ["PNG"] if data[:8] == b"\x89PNG\r\n\x1a\n" else None


def _prepared(data: bytes, image: Any, params: ImagePreparationParams, statistics: bool) -> PreparedImage:
    source, changes = image.format, []
    deep = source == "PNG" and data[_PNG_DEPTH] == 16
    if source not in KEPT_FORMATS:
        changes.append(f"converted from {source}")
    if getattr(image, "n_frames", 1) > 1:
        changes.append("reduced to its first frame")
        image.seek(0)
    orientation = image.getexif().get(_ORIENTATION, 1)
    full_size = image.size
    if source == "JPEG":
        if not statistics and orientation == 1 and not changes and _stays(image, params):
            image.draft(image.mode, (1, 1))  # all data is checked, an eighth of the pixels is made
            image.load()
            return PreparedImage(data, full_size[1], full_size[0], [], changes)
        _decode_smaller(image, params)
    image.decodermaxblock = len(data)  # all at once: each block takes Python's lock, for which other threads wait
    image.load()
    if orientation in range(2, 9):
        image = ImageOps.exif_transpose(image)
        full_size = full_size[::-1] if orientation > 4 else full_size
        changes.append("turned as its EXIF orientation says")
    if deep or image.mode.startswith(("I", "F")):
        image = to_eight_bits(image)
        changes.append("reduced to 8 bits")
    if image.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
        changes.append(f"converted from {image.mode}")
        image = image.convert("RGB")
    processed = _processed(image, full_size, params)
    if processed is not image:
        image = processed
        changes.append("scaled")
    if changes or (params.format != "auto" and params.format.upper() != source):
        changes = changes or [f"converted to {params.format.upper()}"]
        kind = params.format.upper() if params.format != "auto" else ("JPEG" if source == "JPEG" else "PNG")
        image, data = _encoded(image, kind, params.jpeg_quality)
    return PreparedImage(data, image.height, image.width, _histogram(image) if statistics else [], changes)


def _histogram(image: Any) -> list[int]:
    """How often each value occurs in each channel; in a large image, in every n-th of its rows."""
    # counting holds Python's lock: with all rows, two threads would prepare images hardly faster than one
    apart = -(-image.width * image.height // COUNTED_PIXELS)
    if apart > 1:
        image = image.resize((image.width, max(1, image.height // apart)), Image.Resampling.NEAREST)
    counts: list[int] = (image if image.mode == "RGB" else image.convert("RGB")).histogram()
    return counts


def _stays(image: Any, params: ImagePreparationParams) -> bool:
    """Whether a JPEG is stored with its own bytes, as far as its size and colours decide that."""
    small = params.max_edge is None or max(image.size) <= params.max_edge
    kept = params.processing is Processing.NONE and small and params.format in ("auto", "jpeg")
    return kept and image.mode in ("L", "RGB")


def _decode_smaller(image: Any, params: ImagePreparationParams) -> None:
    """Lets libjpeg decode at 1/2, 1/4 or 1/8 where at least twice the size that is wanted is left: far faster."""
    width, height = image.size
    if params.max_edge is not None:
        share = params.max_edge / max(width, height)
    elif params.processing is Processing.CENTER_CROP_THEN_SCALE:
        share = max(params.image_size) / min(width, height)
    elif params.processing is Processing.SQUARE_MARGIN_THEN_SCALE:
        share = max(params.image_size) / max(width, height)
    else:
        return
    if share < 0.5:
        image.draft(image.mode, (math.ceil(width * share * 2), math.ceil(height * share * 2)))


def to_eight_bits(image: Any) -> Any:
    """A 16-bit, 32-bit or float image as 8 bits: the high byte; floats are assumed to lie between 0 and 1, or 0 and 255."""
    if image.mode in ("L", "LA", "RGB", "RGBA", "P", "1"):
        return image  # Pillow reads 16-bit colour as 8 bits
    import numpy as np

    values = np.asarray(image)
    if values.dtype.kind == "f":
        values = values * (255 if values.max(initial=0) <= 1 else 1)
    elif values.max(initial=0) > 255 or image.mode.startswith("I;16"):
        values = values // 256
    return Image.fromarray(values.clip(0, 255).astype(np.uint8))


def _processed(image: Any, full_size: tuple[int, int], params: ImagePreparationParams) -> Any:
    if params.max_edge is not None:
        width, height = full_size
        longest = max(width, height)
        if longest <= params.max_edge:
            return image
        scale = params.max_edge / longest
        return _resized(image, (max(1, round(width * scale)), max(1, round(height * scale))))
    width, height = image.size
    if params.processing is Processing.NONE:
        return image
    target = (params.image_size[1], params.image_size[0])
    if full_size == target and width == height:
        return image
    if params.processing is Processing.CENTER_CROP_THEN_SCALE:
        side = min(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        return _resized(image, target, (left, top, left + side, top + side))
    side = max(width, height)
    colours = _colours(image)
    square = Image.new(colours.mode, (side, side))
    square.paste(colours, ((side - width) // 2, (side - height) // 2))
    return _resized(square, target)


def _resized(image: Any, size: tuple[int, int], box: tuple[int, int, int, int] | None = None) -> Any:
    """Scaled. For smaller images Pillow's Hamming filter looks like the bicubic one, and takes little more than half its time."""
    width, height = (box[2] - box[0], box[3] - box[1]) if box else image.size
    smaller = size[0] <= width and size[1] <= height
    method = Image.Resampling.HAMMING if smaller else Image.Resampling.BICUBIC
    return _colours(image).resize(size, method, box=box, reducing_gap=2.0)


def _colours(image: Any) -> Any:
    """Grey or RGB: palettes cannot be interpolated, and a record holds no transparency."""
    return image if image.mode in ("L", "RGB") else image.convert("L" if image.mode == "1" else "RGB")


def _encoded(image: Any, kind: str, quality: int) -> tuple[Any, bytes]:
    image = _colours(image)
    # Pillow frees Python's lock while it encodes into a file, but not into memory: 0.30 instead of 0.48 ms on two threads
    with os.fdopen(os.memfd_create("image"), "w+b") as file:
        if kind == "JPEG":
            image.save(file, "JPEG", quality=quality, optimize=False)
        else:
            image.save(file, "PNG", compress_level=4)
        file.flush()
        size = os.fstat(file.fileno()).st_size
        return image, os.pread(file.fileno(), size, 0)
