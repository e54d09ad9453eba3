"""`Runtime`: opens an exported model and predicts with it, batch by batch."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from scena.data.database import DataBase
    from scena.model.built import BuiltModel
    from scena.model.model import ModelBase

Arrays = dict[str, np.ndarray]


class Export(Protocol):
    """An exported model whose parameters have been read."""

    directory: Path

    def build(self) -> "BuiltModel":
        """Creates the model in Keras and loads its weights."""


class Runtime:
    """Base of all runtimes: one open model. It may be called from several threads.

    Args:
        params: the options of the runtime.
        export: the export; `export.directory` has its files.
    """

    tolerance = 1e-4
    """How far outputs may be from those of Keras."""

    def __init__(self, params: Any, export: Export) -> None:
        self.params = params
        self.export = export

    def inputs(self) -> list[str]:
        """The names of the inputs that the model takes."""
        raise NotImplementedError(f"{type(self).__name__} must say what its model takes: override inputs().")

    def predict(self, inputs: Arrays) -> Arrays:
        """The named outputs of one batch."""
        raise NotImplementedError(f"{type(self).__name__} must run the model: override predict(inputs).")

    def build(self) -> "BuiltModel | None":
        """The model in Keras, for runtimes that need it; others leave it out, and no network is built."""
        return None


class KerasRuntime(Runtime):
    """The model in Keras itself: the predictor compiles it for the present backend."""

    def build(self) -> "BuiltModel | None":
        return self.export.build()


@dataclass
class UnbuiltModel:
    """What a predictor needs beside a runtime: the data, and the model that prints predictions. There is no network."""

    data: "DataBase[Any]"
    model: "ModelBase[Any]"
