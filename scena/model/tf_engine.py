"""Running a Keras model over blocks of batches with TensorFlow: one compiled loop for any number of steps.

The number of steps in a block never changes results: one step and many go through the same compiled code.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from scena.data.spec import ArraySpec
from scena.model.specs import keras_dtype

Arrays = dict[str, np.ndarray]


class TensorFlowEngine:
    """Trains, validates and predicts with one model.

    Args:
        model: the Keras model whose `train_step` and `test_step` run.
        input_specs: names, shapes and types of the inputs, without the batch.
        target_specs: the same for the targets.
        eager: run op by op instead of compiled, so that a debugger stops inside the model.
    """

    def __init__(
        self,
        model: keras.Model,
        input_specs: dict[str, ArraySpec],
        target_specs: dict[str, ArraySpec],
        *,
        eager: bool = False,
    ) -> None:
        self._model = model
        self._eager = eager
        self._names: list[str] = []
        data = {"inputs": _signature(input_specs), "targets": _signature(target_specs)}
        blocks = {"inputs": _signature(input_specs, block=True), "targets": _signature(target_specs, block=True)}
        self._train = self._compile(self._train_steps, blocks)
        self._test = self._compile(self._test_steps, blocks)
        self._evaluate = self._compile(self._evaluate_step, data)

    def train(self, inputs: Arrays, targets: Arrays) -> list[dict[str, float]]:
        """Runs one training step for each batch of a block (arrays with a leading axis of batches); returns each step's logs."""
        rows = self._train({"inputs": inputs, "targets": targets}).numpy()
        return [dict(zip(self._names, row.tolist(), strict=True)) for row in rows]

    def test(self, inputs: Arrays, targets: Arrays) -> dict[str, float]:
        """Runs one validation step for each batch of a block; returns the running values after the last."""
        row = self._test({"inputs": inputs, "targets": targets}).numpy()
        return dict(zip(self._names, row.tolist(), strict=True))

    def evaluate(self, inputs: Arrays, targets: Arrays) -> Arrays:
        """Predicts one batch, counts losses and metrics, and returns the outputs."""
        outputs = self._evaluate({"inputs": inputs, "targets": targets})
        return {name: np.asarray(value) for name, value in outputs.items()}

    def _compile(self, function: Any, signature: Any) -> Any:
        return function if self._eager else tf.function(function, input_signature=[signature])

    def _train_steps(self, block: Any) -> tf.Tensor:
        count = tf.shape(tf.nest.flatten(block)[0])[0]
        rows = tf.TensorArray(tf.float32, size=count)
        for i in tf.range(count):
            rows = rows.write(i, self._row(self._model.train_step((_pick(block, i),))))
        return rows.stack()

    def _test_steps(self, block: Any) -> tf.Tensor:
        for i in tf.range(tf.shape(tf.nest.flatten(block)[0])[0]):
            self._model.test_step((_pick(block, i),))
        return self._row(self._model.compute_metrics(None, None, None))

    def _evaluate_step(self, data: Any) -> Any:
        outputs = self._model(data, training=False)
        self._model.compute_loss(x=data, y_pred=outputs, training=False)
        return outputs

    def _row(self, logs: dict[str, Any]) -> tf.Tensor:
        self._names = list(logs)
        return tf.stack([tf.cast(value, tf.float32) for value in logs.values()])


class TensorFlowPredictor:
    """Runs a prediction model batch by batch, compiled once for any batch size.

    Args:
        model: a functional model with named inputs and outputs.
        input_specs: names, shapes and types of its inputs.
        eager: run op by op.
    """

    def __init__(self, model: keras.Model, input_specs: dict[str, ArraySpec], *, eager: bool = False) -> None:
        def call(inputs: Any) -> Any:
            return model(inputs, training=False)

        self._call = call if eager else tf.function(call, input_signature=[_signature(input_specs)])

    def predict(self, inputs: Arrays) -> Arrays:
        """The named outputs of one batch."""
        outputs = self._call({name: tf.convert_to_tensor(value) for name, value in inputs.items()})
        return {name: np.asarray(value) for name, value in outputs.items()}


def _signature(specs: dict[str, ArraySpec], block: bool = False) -> dict[str, tf.TensorSpec]:
    lead = (None, None) if block else (None,)
    return {name: tf.TensorSpec((*lead, *spec.shape), keras_dtype(spec), name=name) for name, spec in specs.items()}


def _pick(block: Any, i: Any) -> Any:
    return tf.nest.map_structure(lambda tensor: tensor[i], block)
