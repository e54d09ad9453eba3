"""Contact sheets: many small images with their names in one image."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from scena.data.image.prepare import to_eight_bits
from scena.errors import DataError
from scena.storage.location import reason_of

_TEXT = 14  # pixels below each image


def open_image(data: Any) -> Any:
    """An encoded image (bytes) or an array as a Pillow image in RGB."""
    if isinstance(data, bytes):
        try:
            with Image.open(io.BytesIO(data)) as image:
                image.load()
                return to_eight_bits(image).convert("RGB")
        except OSError as error:
            raise DataError(f"A record holds bytes that are no image: {error}.") from None
    array = np.asarray(data)
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.dtype.kind == "f":
        array = visible(array)
    return Image.fromarray(array.astype(np.uint8)).convert("RGB")


def visible(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Floats as 0..255: as they are if they are in that range, else (normalised images) spread over it."""
    low, high = float(array.min(initial=0)), float(array.max(initial=0))
    if low >= 0 and high > 1:
        return array.clip(0, 255)
    if low >= 0:
        return array * 255
    return (array - low) * (255 / max(high - low, 1e-9))


def contact_sheet(images: Sequence[tuple[Any, str]], *, columns: int = 8, size: int = 96) -> Any:
    """A Pillow image with images (encoded, or arrays) and a line of text below each."""
    columns = max(1, min(columns, len(images)))
    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (columns * (size + 4) + 4, rows * (size + _TEXT + 4) + 4), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(10)
    for number, (data, text) in enumerate(images):
        image = open_image(data)
        scale = size / max(image.size)
        image = image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))))
        left = 4 + number % columns * (size + 4)
        top = 4 + number // columns * (size + _TEXT + 4)
        sheet.paste(image, (left + (size - image.width) // 2, top + (size - image.height) // 2))
        draw.text((left, top + size), text[: size // 5], fill="black", font=font)
    return sheet


def save_sheet(sheet: Any, path: Path) -> None:
    """Writes an image in the format of its file name."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(path)
    except OSError as error:
        raise DataError(f"The image {str(path)!r} cannot be written: {reason_of(error)}.") from None
    except ValueError:
        raise DataError(f"The name must end with a format, for example .png. Received: {str(path)!r}.") from None
