"""What an evaluator may return beside numbers: images, sounds, curves, texts for TensorBoard.

Each is written under the name it has in the evaluator's results. Ready-made summaries (serialised protocol buffers) are bytes.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from scena.errors import ModelError


class TensorBoardData(ABC):
    """Something to look at in TensorBoard."""

    @abstractmethod
    def write(self, name: str, step: int) -> None:
        """Writes it to TensorBoard's active writer."""

    def describe(self) -> str:
        """What stands for it where only text can be shown, as in a table of results."""
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
        """Their size."""
        return f"[image data of shape {'×'.join(map(str, self.images.shape))}]"

    def write(self, name: str, step: int) -> None:
        """Writes the images."""
        import tensorflow as tf

        images = self.images
        if images.ndim == 2:
            images = images[..., np.newaxis]
        if images.ndim == 3:
            images = images[np.newaxis] if images.shape[-1] in (1, 3, 4) else images[..., np.newaxis]
        tf.summary.image(name, images, step=step, max_outputs=self.most)


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
        """Their size."""
        return f"[{len(np.atleast_2d(self.waves))} sounds of {self.waves.shape[-1] / self.sample_rate:.3g} s]"

    def write(self, name: str, step: int) -> None:
        """Writes the sounds."""
        import tensorflow as tf

        waves = np.atleast_2d(self.waves)[..., np.newaxis]
        tf.summary.audio(name, waves, self.sample_rate, step=step, max_outputs=self.most)


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
        """Their size."""
        return f"[PR curve of {self.labels.size} samples]"

    def write(self, name: str, step: int) -> None:
        """Writes the curve."""
        import tensorflow as tf
        from tensorboard.plugins.pr_curve import summary

        made = summary.pb(name, self.labels, self.predictions, num_thresholds=self.thresholds)
        tf.summary.experimental.write_raw_pb(made.SerializeToString(), step=step)


class HistogramData(TensorBoardData):
    """How values are distributed.

    Args:
        values: any array of numbers.
    """

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def describe(self) -> str:
        """Their size."""
        return f"[histogram of {self.values.size} values]"

    def write(self, name: str, step: int) -> None:
        """Writes the histogram."""
        import tensorflow as tf

        tf.summary.histogram(name, self.values, step=step)


class TextData(TensorBoardData):
    """A text, shown as Markdown.

    Args:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def describe(self) -> str:
        """The text itself."""
        return self.text

    def write(self, name: str, step: int) -> None:
        """Writes the text."""
        import tensorflow as tf

        tf.summary.text(name, self.text, step=step)


class RawSummary(TensorBoardData):
    """A summary that is already serialised, as TensorBoard's plugins make them.

    Args:
        summary: the bytes of a `Summary` protocol buffer.
    """

    def __init__(self, summary: bytes) -> None:
        self.summary = summary

    def describe(self) -> str:
        """Their size."""
        return f"[TensorBoard summary of {len(self.summary)} bytes]"

    def write(self, name: str, step: int) -> None:
        """Writes it; its own tag names it."""
        import tensorflow as tf

        del name
        tf.summary.experimental.write_raw_pb(self.summary, step=step)


def plain_result(value: Any) -> Any:
    """A result as JSON can hold it: numbers and texts as they are, a description of data for TensorBoard and of other objects."""
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
    """Numbers for logs and history, and what only TensorBoard can show.

    Raises:
        ModelError: a result is neither.
    """
    numbers: dict[str, float] = {}
    shown: dict[str, TensorBoardData] = {}
    for name, value in results.items():
        if isinstance(value, TensorBoardData):
            shown[name] = value
        elif isinstance(value, bytes):
            shown[name] = RawSummary(value)
        elif np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf":
            numbers[name] = float(value)
        else:
            raise ModelError(
                f"The result {name!r} is neither a number nor data for TensorBoard (ImageData, PRCurveData, …). "
                f"Received: {type(value).__name__}."
            )
    return numbers, shown
