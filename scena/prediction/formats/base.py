"""`ExportFormat`: what writes the graphs of a model in one format, and runs what it wrote."""

from collections.abc import Callable
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

    def inputs(self, graph: "keras.Model", inputs: Arrays, padding: dict[str, object]) -> Arrays:
        """The inputs that the format is compared on; default: those of the pipeline."""
        del graph, padding
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
