"""`Runtime`: opens an exported model and predicts with it, batch by batch."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from scena.data.spec import ArraySpec
from scena.model.printing import PrintsDescription

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

    model_prints = True
    """Whether predictions are printed by the scenario's model, which needs Keras; else by its data."""
    parallel_calls = 1
    """How many calls at the same time, each in a thread of its own, predict more samples per second than one after the other."""

    def __init__(self, params: Any, export: Export) -> None:
        self.params = params
        self.export = export

    def inputs(self) -> list[str]:
        """The names of the inputs that the model takes."""
        raise NotImplementedError(f"{type(self).__name__} must say what its model takes: override inputs().")

    def outputs(self) -> dict[str, ArraySpec]:
        """The outputs by name, for the pages of a service; default: unknown."""
        return {}

    @property
    def call_size(self) -> int | None:
        """With how many samples in a call most are predicted per second; None: unknown. Larger batches are divided by the runtime."""
        return None

    def predict(self, inputs: Arrays) -> Arrays:
        """The named outputs of one batch."""
        raise NotImplementedError(f"{type(self).__name__} must run the model: override predict(inputs).")

    def many_calls(self) -> AbstractContextManager[None]:
        """Inside, many calls follow each other, up to `parallel_calls` at the same time."""
        return nullcontext()

    def prepare_service(self, inputs: Arrays) -> None:
        """Before the first request of a service, with an example: chooses how calls are fastest."""

    def build(self) -> "BuiltModel | None":
        """The model in Keras, for runtimes that need it; others return None, and no network is built."""
        return None


class KerasRuntime(Runtime):
    """The model in Keras itself: the predictor compiles it for the present backend."""

    def build(self) -> "BuiltModel | None":
        return self.export.build()


def joined(outputs: list[Arrays]) -> Arrays:
    """The outputs of several calls as those of one."""
    if len(outputs) == 1:
        return outputs[0]
    return {name: np.concatenate([output[name] for output in outputs]) for name in outputs[0]}


class UnbuiltModel:
    """What predictors and LAV need beside a runtime. There is no network.

    Args:
        data: the scenario's data.
        runtime: what runs the model.
        create_model: creates the scenario's model, which needs Keras.
    """

    def __init__(self, data: "DataBase[Any]", runtime: Runtime, create_model: "Callable[[], ModelBase[Any]]") -> None:
        self.data = data
        self.runtime = runtime
        self._create_model = create_model

    @cached_property
    def model(self) -> "ModelBase[Any] | PrintsDescription":
        """What prints predictions: the scenario's model if it has its own way, else the data's description."""
        return self._create_model() if self.runtime.model_prints else PrintsDescription()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"There is no network, and no {name!r}: {type(self.runtime).__name__} runs the model. Choose the runtime keras."
        )
