"""Images, curves and texts of evaluators: stored as arrays by the training, drawn by the sender."""

import io
import logging
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scena.model.tensorboard import HistogramData, ImageData, PRCurveData, TensorBoardData, TextData
from scena.plots import PlotError, new_figure
from scena.storage.checksums import checksum
from scena.storage.durable import write_file
from scena.training.trackers.journal import Data
from scena.training.trackers.service import Picture

logger = logging.getLogger(__name__)

_ARRAYS = {"image": ("images",), "pr_curve": ("labels", "predictions"), "histogram": ("values",), "text": ("text",)}
"""The arrays of each kind."""


def kind_of_data(data: TensorBoardData) -> str | None:
    """The kind under which the journal has such data; None if only TensorBoard can show it."""
    kinds = {ImageData: "image", PRCurveData: "pr_curve", HistogramData: "histogram", TextData: "text"}
    return next((kind for cls, kind in kinds.items() if isinstance(data, cls)), None)


def store_data(data: Any, folder: Path, key: str, step: int, branch: int) -> tuple[str, str]:
    """Writes the arrays of `data` into the media folder and returns the name of the file and its checksum."""
    arrays: dict[str, Any]
    match data:
        case ImageData():
            arrays = {"images": _as_batch(data.images)[: data.most]}
        case PRCurveData():
            arrays = {"labels": data.labels, "predictions": data.predictions}
        case HistogramData():
            arrays = {"values": data.values}
        case _:
            arrays = {"text": np.array(data.text)}
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{branch}-{step}-{re.sub(r'[^A-Za-z0-9_.-]', '_', key)}.npz"
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_file(folder / name, content.getvalue())
    return name, checksum(content.getvalue())


def pieces(entry: Data, folder: Path) -> Iterator[Picture | str]:
    """What a service shows: PNG files, which are written beside the arrays, or a text. Nothing if the arrays are gone."""
    path = folder / Path(entry.file).name
    try:
        content = path.read_bytes()
        if entry.checksum not in ("", checksum(content)):
            raise ValueError(f"{path} is damaged, or belongs to something else: its checksum is wrong")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in _ARRAYS[entry.kind]}
    except (KeyError, OSError, RuntimeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        logger.warning("%s of step %d cannot be shown: %s.", entry.key, entry.step, error)
        return
    if entry.kind == "text":
        yield str(arrays["text"])
        return
    if entry.kind == "image":
        images = _as_batch(arrays["images"])
        for number, image in enumerate(images):
            key = entry.key if len(images) == 1 else f"{entry.key}/{number}"
            yield Picture(key, entry.step, entry.time, _write_image(image, path.with_suffix(f".{number}.png")))
        return
    try:
        file = _draw(entry.kind, arrays, f"{entry.key}, step {entry.step}", path.with_suffix(".png"))
    except PlotError as error:
        logger.warning("%s of step %d cannot be drawn: %s", entry.key, entry.step, error)
    else:
        yield Picture(entry.key, entry.step, entry.time, file)


def _as_batch(images: np.ndarray) -> np.ndarray:
    """Several images with channels, whatever of that was left out."""
    if images.ndim == 2:
        images = images[..., np.newaxis]
    if images.ndim == 3:
        images = images[np.newaxis] if images.shape[-1] in (1, 3, 4) else images[..., np.newaxis]
    return images


def _write_image(image: np.ndarray, path: Path) -> Path:
    from PIL import Image

    if image.dtype != np.uint8:
        image = np.round(np.clip(np.nan_to_num(image), 0, 1) * 255).astype(np.uint8)
    Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(path)
    return path


def _draw(kind: str, arrays: dict[str, np.ndarray], title: str, path: Path) -> Path:
    figure = new_figure(5, 4)
    axes = figure.add_subplot()
    if kind == "histogram":
        axes.hist(arrays["values"].reshape(-1), bins=50)
        axes.set(title=title, ylabel="count")
    else:
        recall, precision = precision_recall(arrays["labels"], arrays["predictions"])
        axes.plot(recall, precision, drawstyle="steps-post")
        axes.set(title=title, xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02))
    figure.savefig(path, format="png", metadata={"Software": None})
    return path


def precision_recall(labels: np.ndarray, predictions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Recall and precision at each threshold, from the highest one down."""
    order = np.argsort(-predictions.reshape(-1), kind="stable")
    scores, found = predictions.reshape(-1)[order], np.cumsum(labels.reshape(-1)[order])
    last = np.append(scores[1:] != scores[:-1], True)[: len(scores)]  # samples with the same score pass together
    chosen = np.arange(1, len(scores) + 1)[last]
    return found[last] / max(found[-1] if len(found) else 0, 1), found[last] / np.maximum(chosen, 1)
