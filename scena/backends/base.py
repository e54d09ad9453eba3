"""What runs a Keras model over batches: the seam between the backends, which are in `tensorflow/engine.py` and `jax/engine.py`."""

from typing import Any, Protocol

import keras
import numpy as np

from scena.backends.selection import on_tensorflow
from scena.data.spec import ArraySpec

Arrays = dict[str, np.ndarray]
"""Named arrays: the inputs, targets or outputs of a batch."""


class Engine(Protocol):
    """Trains, validates and predicts with one model. The results of a block of batches do not depend on its length."""

    def train(self, inputs: Arrays, targets: Arrays) -> list[dict[str, float]]:
        """Runs one training step for each batch of a block (arrays with a leading axis of batches); returns each step's logs."""

    def test(self, inputs: Arrays, targets: Arrays) -> dict[str, float]:
        """Runs one validation step for each batch of a block; returns the running values after the last."""

    def evaluate(self, inputs: Arrays, targets: Arrays) -> Arrays:
        """Predicts one batch, counts losses and metrics, and returns the outputs."""

    def graph(self) -> Any:
        """The TensorFlow graph of a block of training steps; None where there is none."""

    def retrace(self) -> None:
        """Compiles anew when it is called next: what is compiled holds tensors that a layer has replaced."""


class PredictionEngine(Protocol):
    """Runs a prediction model batch by batch; may be called from several threads."""

    def predict(self, inputs: Arrays) -> Arrays:
        """The named outputs of one batch."""


def create_engine(
    model: keras.Model,
    input_specs: dict[str, ArraySpec],
    target_specs: dict[str, ArraySpec],
    *,
    eager: bool = False,
    xla: bool = False,
) -> Engine:
    """The engine of the present backend.

    Args:
        model: the Keras model whose `train_step` and `test_step` run.
        input_specs: names, shapes and types of the inputs, without the batch.
        target_specs: the same for the targets.
        eager: run op by op instead of compiled, so that a debugger stops inside the model.
        xla: compile each step with XLA (JAX always does).
    """
    if on_tensorflow():
        from scena.backends.tensorflow.engine import TensorFlowEngine

        return TensorFlowEngine(model, input_specs, target_specs, eager=eager, xla=xla)
    from scena.backends.jax.engine import JaxEngine

    return JaxEngine(model, input_specs, target_specs, eager=eager)


def create_prediction_engine(
    model: keras.Model, input_specs: dict[str, ArraySpec], *, eager: bool = False
) -> PredictionEngine:
    """The same for prediction alone.

    Args:
        model: a functional model with named inputs and outputs.
        input_specs: names, shapes and types of its inputs.
        eager: run op by op.
    """
    if on_tensorflow():
        from scena.backends.tensorflow.engine import TensorFlowPredictor

        return TensorFlowPredictor(model, input_specs, eager=eager)
    from scena.backends.jax.engine import JaxPredictor

    return JaxPredictor(model, input_specs, eager=eager)
