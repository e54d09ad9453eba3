"""The info of a data set of images, and the mean and standard deviation of their channels, exactly, from histograms."""

import json
from typing import Any

import numpy as np

from scena.errors import DataError
from scena.storage.checksums import IN_JSON, warn_if_changed, warn_if_json_changed
from scena.storage.location import is_folder, is_remote, located, read_bytes, reason_of

INFO_FILE = "info.json"
_VALUES = np.arange(256, dtype=np.int64)
_TOGETHER = 64


class ChannelStatistics:
    """Sums histograms of 256 values for each of three channels."""

    def __init__(self) -> None:
        self._counts = np.zeros((3, 256), np.int64)
        self._waiting: list[Any] = []

    def add(self, histogram: Any) -> None:
        """Adds an image's histogram (768 numbers, as Pillow gives it for RGB)."""
        self._waiting.append(histogram)
        if len(self._waiting) >= _TOGETHER:  # numpy frees Python's lock for each sum, and has to wait for it again
            self._add_waiting()

    def _add_waiting(self) -> None:
        if self._waiting:
            self._counts += np.asarray(self._waiting, np.int64).sum(axis=0).reshape(3, 256)
            self._waiting.clear()

    def to_json(self) -> dict[str, Any]:
        """Mean and standard deviation of values scaled to 0..1, and the number of pixels."""
        self._add_waiting()
        pixels = self._counts.sum(axis=1)
        if not pixels[0]:
            return {"mean": None, "std": None, "pixels": 0}
        mean = (self._counts @ _VALUES) / pixels
        squares = (self._counts @ (_VALUES * _VALUES)) / pixels
        std = np.sqrt(np.maximum(squares - mean * mean, 0))
        shares = ([round(float(value) / 255, 8) for value in values] for values in (mean, std))
        return {**dict(zip(("mean", "std"), shares, strict=True)), "pixels": int(pixels[0])}


def image_info(name: str, classes: list[str], splits: dict[str, Any], sizes: list[tuple[int, int]],
               statistics: dict[str, Any]) -> dict[str, Any]:  # fmt: skip
    """The content of an info file; `sizes` are the heights and widths of all images."""
    heights, widths = zip(*sizes, strict=True) if sizes else ((), ())
    ranges = {"height": [min(heights), max(heights)], "width": [min(widths), max(widths)]} if sizes else {}
    return {
        "format": "scena-images",
        "version": 1,
        "name": name,
        "classes": classes,
        "splits": splits,
        "sizes": ranges,
        "statistics": statistics,
    }


def read_info(path: Any) -> dict[str, Any]:
    """The info file of a data set: the file itself, or the folder it lies in."""
    file = located(path)
    file = file / INFO_FILE if is_folder(file) else file
    try:
        data = read_bytes(file)
    except OSError as error:
        raise DataError(f"The info file {str(file)!r} cannot be read: {reason_of(error)}.") from None
    if not is_remote(file):
        warn_if_changed(file, data)
    return parse_info(data, str(file))


def parse_info(text: bytes, file: str) -> dict[str, Any]:
    """The contents of an info file."""
    try:
        info = json.loads(text)
        warn_if_json_changed(info, file)
    except (ValueError, RecursionError) as error:
        raise DataError(f"The info file {file!r} is not JSON: {error}.") from None
    if not isinstance(info, dict) or info.get("format") != "scena-images":
        raise DataError(f"{file!r} is not the info file of a data set of images.")
    if not _names_classes(info.get("classes", []), info.get("splits", {})):
        raise DataError(f"The info file {file!r} is damaged: it does not say which classes there are.")
    info.pop(IN_JSON, None)
    return info


def _names_classes(classes: Any, splits: Any) -> bool:
    if (
        not isinstance(classes, list)
        or not isinstance(splits, dict)
        or not all(isinstance(name, str) for name in classes)
    ):
        return False
    counts = [split.get("classes") if isinstance(split, dict) else None for split in splits.values()]
    return all(isinstance(count, dict) and count.keys() >= set(classes) for count in counts)


def read_statistics(path: Any) -> tuple[list[float], list[float]]:
    """Mean and standard deviation from the info file of a data set."""
    statistics = read_info(path).get("statistics", {})
    if not statistics.get("mean") or not statistics.get("std"):
        raise DataError(f"The info file of {str(path)!r} holds no statistics.")
    return [float(value) for value in statistics["mean"]], [float(value) for value in statistics["std"]]
