"""`Backend`: what Scena needs of a Keras backend. Those of TensorFlow and JAX are in `tensorflow/` and `jax/`; plugins add others."""

import functools
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Protocol

import keras
import numpy as np

from scena.backends.params import ComputeParams
from scena.backends.selection import BackendError, check_backend, load_keras
from scena.data.spec import ArraySpec
from scena.plugins import find

Arrays = dict[str, np.ndarray]
"""Named arrays: the inputs, targets or outputs of a batch."""
Specs = dict[str, ArraySpec]
"""Names, shapes and types of inputs or targets, without the batch."""


class Engine(Protocol):
    """Trains, validates and predicts with one model. Results do not depend on the length of step blocks."""

    def load(self, inputs: Arrays, targets: Arrays) -> tuple[Any, Any]:
        """The arrays of a step block as `train` takes them without a further copy."""
        return inputs, targets

    def train(self, inputs: Arrays, targets: Arrays) -> list[dict[str, float]]:
        """Runs a step block: one training step per batch (arrays with a leading axis of batches); returns the logs of each."""

    def test(self, inputs: Arrays, targets: Arrays) -> dict[str, float]:
        """Runs one validation step per batch of a block; returns the running values after the last."""

    def evaluate(self, inputs: Arrays, targets: Arrays) -> Arrays:
        """Predicts one batch, counts losses and metrics, and returns the outputs."""

    def graph(self) -> Any:
        """The TensorFlow graph of a step block; None if there is none."""

    def retrace(self) -> None:
        """Compiles again at the next call, because a layer has replaced tensors."""


class PredictionEngine(Protocol):
    """Runs a prediction model batch by batch; may be called from several threads."""

    parallel_calls: int = 1
    """How many calls at the same time predict more samples per second than one after the other."""

    def predict(self, inputs: Arrays) -> Arrays:
        """The named outputs of one batch."""


class Backend:
    """Base of all backends: predicts with any Keras backend, op by op. Override the rest to train, and to be fast.

    Another package adds one with the entry point `Backend.NAME`, where NAME is Keras' own name of it (`KERAS_BACKEND`).
    """

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages that results depend on besides Keras, TensorFlow and numpy; checkpoints store their versions."""
    any_batch_size: ClassVar[bool] = False
    """Whether a batch of another size needs no new compilation."""
    saved_model_writer: ClassVar[str] = ""
    """`module:function` that writes a graph as a SavedModel; empty if that is not possible."""

    def select_devices(self, params: ComputeParams) -> None:
        """Chooses what to compute on, before the first tensor is made.

        Raises:
            DeviceError: a device was asked for that cannot be used.
        """
        check_backend(params, "device")

    def compute_deterministically(self) -> None:
        """Uses only operations that give the same bits each time, from now on."""

    def create_engine(
        self, model: keras.Model, input_specs: Specs, target_specs: Specs, *, eager: bool = False, xla: bool = False
    ) -> Engine:
        """The engine that trains and validates.

        Args:
            model: the Keras model whose `train_step` and `test_step` run.
            input_specs: the inputs.
            target_specs: the targets.
            eager: run op by op instead of compiled, so that a debugger stops inside the model.
            xla: compile each step with XLA (JAX always does).
        """
        raise self.only_predicts()

    def check_training(self) -> None:
        """Raises BackendError on a backend that can only predict, before anything is built."""
        if type(self).create_engine is Backend.create_engine:
            raise self.only_predicts()

    def only_predicts(self) -> BackendError:
        """The error of a backend that has no engine."""
        return BackendError(
            f"The backend {self.name} can only predict. Train and evaluate with KERAS_BACKEND=tensorflow."
        )

    def create_prediction_engine(
        self, model: keras.Model, input_specs: Specs, *, eager: bool = False
    ) -> PredictionEngine:
        """The engine that predicts with a functional model with named inputs and outputs."""
        return _OpByOp(model)

    def variable_views(self, variables: Iterable[keras.Variable]) -> list[np.ndarray]:
        """The values as arrays that share the variables' memory where that is possible; copy them before the next step."""
        return [np.asarray(variable.value) for variable in variables]

    def run_unchanged(self, graph: keras.Model) -> Callable[[Arrays], Arrays]:
        """A function that runs a graph and leaves its variables as they are, also those that a layer changes when it is called.

        It may be compiled when it is first called: what layers keep outside of variables is then fixed.
        """
        traced: dict[int, Callable[..., Any]] = {}

        def run(inputs: Arrays) -> Arrays:
            with self.fast_loops(traced), keras.StatelessScope():
                return _OpByOp(graph).predict(inputs)

        return run

    def fast_loops(self, traced: dict[int, Callable[..., Any]] | None = None) -> AbstractContextManager[None]:
        """Inside, recurrent layers of a model that runs op by op do not run time step by time step.

        Args:
            traced: what was compiled for that before; the block adds to it.
        """
        return nullcontext()


class _OpByOp(PredictionEngine):
    def __init__(self, model: keras.Model) -> None:
        self._model = model

    def predict(self, inputs: Arrays) -> Arrays:
        tensors = {name: keras.ops.convert_to_tensor(value) for name, value in inputs.items()}
        outputs = self._model(tensors, training=False)
        return {name: np.asarray(keras.ops.convert_to_numpy(value)) for name, value in outputs.items()}


@functools.cache
def backend() -> Backend:
    """The backend of this process."""
    found: Backend = find("Backend", load_keras())()
    return found
