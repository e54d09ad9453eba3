"""Content for TensorBoard other than numbers: data that evaluators and metrics return, and arrays that layers offer.

Data is written under its name in the results. Ready-made summaries (serialised protocol buffers) are bytes. Offering an array costs
nothing in a training step: arrays are only collected when the trainer runs one batch for that purpose.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from scena.errors import ModelError


def _summary() -> Any:
    import tensorflow as tf

    return tf.summary


class TensorBoardData(ABC):
    """Something to look at in TensorBoard."""

    @abstractmethod
    def write(self, name: str, step: int) -> None:
        """Writes it to TensorBoard's active writer."""

    def describe(self) -> str:
        """A text in its place where only text can be shown, as in a table of results."""
        return f"[{type(self).__name__}]"


class ImageData(TensorBoardData):
    """Images.

    Args:
        images: height × width (× channels), or several of them; uint8, or floats from 0 to 1.
        most: how many to show.
    """

    def __init__(self, images: Any, most: int = 10) -> None:
        self.images = np.asarray(images)
        self.most = most

    def describe(self) -> str:
        return f"[image data of shape {'×'.join(map(str, self.images.shape))}]"

    def write(self, name: str, step: int) -> None:
        images = self.images
        if images.ndim == 2:
            images = images[..., np.newaxis]
        if images.ndim == 3:
            images = images[np.newaxis] if images.shape[-1] in (1, 3, 4) else images[..., np.newaxis]
        _summary().image(name, images, step=step, max_outputs=self.most)


class AudioData(TensorBoardData):
    """Sounds.

    Args:
        waves: samples from -1 to 1: time, or sounds × time.
        sample_rate: samples per second.
        most: how many to keep.
    """

    def __init__(self, waves: Any, sample_rate: int, most: int = 10) -> None:
        self.waves = np.asarray(waves, np.float32)
        self.sample_rate = sample_rate
        self.most = most

    def describe(self) -> str:
        return f"[{len(np.atleast_2d(self.waves))} sounds of {self.waves.shape[-1] / self.sample_rate:.3g} s]"

    def write(self, name: str, step: int) -> None:
        waves = np.atleast_2d(self.waves)[..., np.newaxis]
        _summary().audio(name, waves, self.sample_rate, step=step, max_outputs=self.most)


class PRCurveData(TensorBoardData):
    """A precision-recall curve.

    Args:
        labels: which samples are positive.
        predictions: the predicted probability of each, from 0 to 1.
        thresholds: number of points of the curve.
    """

    def __init__(self, labels: Any, predictions: Any, thresholds: int = 127) -> None:
        self.labels = np.asarray(labels, bool)
        self.predictions = np.asarray(predictions, np.float32)
        self.thresholds = thresholds

    def describe(self) -> str:
        return f"[PR curve of {self.labels.size} samples]"

    def write(self, name: str, step: int) -> None:
        from tensorboard.plugins.pr_curve import summary

        made = summary.pb(name, self.labels, self.predictions, num_thresholds=self.thresholds)
        _summary().experimental.write_raw_pb(made.SerializeToString(), step=step)


class HistogramData(TensorBoardData):
    """How values are distributed.

    Args:
        values: any array of numbers.
    """

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def describe(self) -> str:
        return f"[histogram of {self.values.size} values]"

    def write(self, name: str, step: int) -> None:
        _summary().histogram(name, self.values, step=step)


class TextData(TensorBoardData):
    """A text, shown as Markdown.

    Args:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def describe(self) -> str:
        return self.text

    def write(self, name: str, step: int) -> None:
        _summary().text(name, self.text, step=step)


class RawSummary(TensorBoardData):
    """A serialised summary, as TensorBoard's plugins create them."""

    def __init__(self, summary: bytes) -> None:
        self.summary = summary

    def describe(self) -> str:
        return f"[TensorBoard summary of {len(self.summary)} bytes]"

    def write(self, name: str, step: int) -> None:
        del name  # the summary has a tag of its own
        _summary().experimental.write_raw_pb(self.summary, step=step)


def plain_result(value: Any) -> Any:
    """A result as JSON can hold it: numbers and texts, and descriptions of everything else."""
    if isinstance(value, TensorBoardData):
        return value.describe()
    if isinstance(value, bytes):
        return RawSummary(value).describe()
    if isinstance(value, dict):
        return {str(name): plain_result(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_result(item) for item in value]
    if hasattr(value, "tolist"):
        return plain_result(value.tolist())
    known = value is None or isinstance(value, bool | int | float | str)
    return value if known else f"[{type(value).__name__}]"


def split_results(results: dict[str, Any]) -> tuple[dict[str, float], dict[str, TensorBoardData]]:
    """Splits results into numbers, for logs and history, and data that only TensorBoard can show.

    Raises:
        ModelError: a result is neither.
    """
    numbers: dict[str, float] = {}
    shown: dict[str, TensorBoardData] = {}
    for name, value in results.items():
        if isinstance(value, TensorBoardData):
            shown[name] = value
        elif isinstance(value, bytes):
            shown[name] = _checked_summary(name, value)
        elif np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf":
            numbers[name] = float(value)
        else:
            raise ModelError(
                f"The result {name!r} is neither a number nor data for TensorBoard (ImageData, PRCurveData, …). "
                f"Received: {type(value).__name__}."
            )
    return numbers, shown


def _checked_summary(name: str, value: bytes) -> RawSummary:
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.summary_pb2 import Summary

    try:
        parsed = Summary.FromString(value)
    except DecodeError:
        parsed = Summary()
    if not parsed.value:
        raise ModelError(
            f"The result {name!r} is bytes, but no serialized summary for TensorBoard. Return a number, a text as TextData(…), or the "
            f"bytes of a summary. Received: {value[:40]!r}."
        )
    return RawSummary(value)


_collected: ContextVar[list[tuple["TensorBoardWriter", Any]] | None] = ContextVar("collected", default=None)


class TensorBoardWriter:
    """Writes an array that a layer offers.

    Args:
        name: the tag in TensorBoard.
        func: called with (name, array, step) while TensorBoard's writer is active; use `tf.summary.image` and its kin in it.
    """

    def __init__(self, name: str, func: Callable[[str, np.ndarray, int], None]) -> None:
        self.name = name
        self.func = func


def add_tensorboard(writer: TensorBoardWriter, value: Any) -> None:
    """Offers a tensor from inside a layer's `call`."""
    collected = _collected.get()
    if collected is not None:
        collected.append((writer, value))


@contextmanager
def collect_tensorboard() -> Iterator[list[tuple[TensorBoardWriter, Any]]]:
    """Collects the arrays that layers offer while the block runs the network eagerly."""
    collected: list[tuple[TensorBoardWriter, Any]] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)
