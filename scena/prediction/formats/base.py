"""`ExportFormat`: writes the graphs of a model in one format, and runs what it wrote. And what formats share."""

import contextlib
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import keras

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays], Arrays]
"""A converted model: named arrays in, named arrays out."""


class ExportFormat:
    """Base of all formats. `scena export` writes each graph aside, compares its outputs with the original's, and keeps what is right.

    Args:
        params: the options of the format.
    """

    package = ""
    """The package that runs what was written; its version is noted."""
    one_by_one = False
    """Whether what was written last takes one sample at a time."""

    def __init__(self, params: Any) -> None:
        self.params = params

    def file_name(self, suffix: str) -> str:
        """The file or folder of a graph.

        Args:
            suffix: empty for the main graph, `_NAME` for an additional one.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must say what its files are called: override file_name(suffix)."
        )

    def versions(self) -> dict[str, str]:
        """The version of what ran the comparison."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            return {self.package: version(self.package)} if self.package else {}
        except PackageNotFoundError:
            return {}

    def inputs(self, graph: "keras.Model", inputs: Arrays, padding: dict[str, object]) -> Arrays:
        """The inputs that the format is compared on; default: those of the pipeline."""
        return inputs

    def write(self, graph: "keras.Model", path: Path, inputs: Arrays) -> None:
        """Writes a graph, with the names of its inputs and outputs.

        Args:
            graph: a functional Keras model.
            path: the file or folder to write, called `file_name`.
            inputs: a batch of real inputs, for formats that measure something on them.

        Raises:
            ConversionError: this graph cannot be written.
        """
        raise NotImplementedError(f"{type(self).__name__} must write a graph: override write(graph, path, inputs).")

    def open(self, path: Path) -> Run:
        """The written model, ready to run."""
        raise NotImplementedError(f"{type(self).__name__} must run what it wrote: override open(path).")


def difference(wanted: np.ndarray, received: np.ndarray) -> float:
    """How far one output is from what it should be; infinite if it has another shape.

    Real outputs: the largest difference, relative to the largest value (if that exceeds 1). Whole numbers: the share that differs.
    """
    if wanted.shape != received.shape:
        return float("inf")
    if not np.issubdtype(wanted.dtype, np.floating):
        return float(np.mean(wanted != received)) if wanted.size else 0.0
    wanted, received = wanted.astype("float64"), received.astype("float64")
    if not np.array_equal(np.isfinite(wanted), np.isfinite(received)):
        return float("inf")
    finite = np.isfinite(wanted)
    scale = max(1.0, float(np.max(np.abs(wanted[finite]), initial=0.0)))
    return float(np.max(np.abs(wanted[finite] - received[finite]), initial=0.0)) / scale


@contextlib.contextmanager
def convertible() -> Iterator[None]:
    """Inside, `argmax` is traced in operations that ONNX and LiteRT have.

    Keras 3.15 looks at the sign bit of zeros in `argmax` of floats, with bit operations that neither format knows. Comparing with
    zero instead differs for -0.0 only. There is no public switch for it, hence the reach into Keras; a test notices when it is not
    needed any more.
    """
    import tensorflow as tf
    from keras.src.backend.tensorflow import numpy as keras_numpy

    original = getattr(keras_numpy, "signbit", None)
    if original is None:
        yield
        return
    keras_numpy.signbit = lambda x: tf.less(tf.convert_to_tensor(x), 0)
    try:
        yield
    finally:
        keras_numpy.signbit = original


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hides what converters print on their way; their exceptions say what matters."""
    loggers = [logging.getLogger(name) for name in ("tf2onnx", "tensorflow", "absl")]
    levels = [logger.level for logger in loggers]
    real = os.dup(2)
    with tempfile.TemporaryFile() as noise, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.dup2(noise.fileno(), 2)
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            yield
        finally:
            os.dup2(real, 2)
            os.close(real)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
