"""Images and texts of validations from TensorBoard's files, for runs that were trained without a tracker."""

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scena.data.records.framing import OVERHEAD, RecordError, record_at
from scena.model.tensorboard import ImageData, TextData
from scena.training.trackers.values import MEASURED

logger = logging.getLogger(__name__)


class StoredMedia(NamedTuple):
    """Something to look at that a validation has left in TensorBoard's files."""

    key: str
    step: int
    time: int
    """Milliseconds since 1970."""
    data: ImageData | TextData


def stored_media(tensorboard: Path) -> list[StoredMedia]:
    """The images and texts of validations and LAV, by step; each once, as it was written last."""
    found: dict[tuple[str, int], StoredMedia] = {}
    for kind in MEASURED:
        for path in sorted((tensorboard / kind).glob("*tfevents*")):
            for event in _events(path):
                for value in event.summary.value:
                    data = _data(value)
                    if data is not None:
                        media = StoredMedia(f"{kind}/{value.tag}", event.step, int(1000 * event.wall_time), data)
                        found[media.key, media.step] = media
    return sorted(found.values(), key=lambda media: (media.step, media.key))


def _data(value: Any) -> ImageData | TextData | None:
    """The content of a summary; None if it is a number, or something that cannot be shown elsewhere."""
    content = value.tensor.string_val
    try:
        match value.metadata.plugin_data.plugin_name:
            case "images":  # width, height, and the PNG files
                from PIL import Image

                images = [np.asarray(Image.open(io.BytesIO(encoded))) for encoded in content[2:]]
                return ImageData(np.stack([image.reshape(*image.shape[:2], -1) for image in images]), len(images))
            case "text":
                return TextData(content[0].decode())
    except (OSError, ValueError, IndexError) as error:
        logger.warning("%s of TensorBoard's files cannot be shown: %s.", value.tag, error)
    return None


def _events(path: Path) -> Iterator[Any]:
    """The complete records of an event file; a killed training may leave half of one."""
    from tensorboard.compat.proto.event_pb2 import Event

    content, offset = path.read_bytes(), 0
    while offset < len(content):
        try:
            record = record_at(content, offset, str(path))
        except RecordError:
            return
        yield Event.FromString(record)
        offset += OVERHEAD + len(record)
