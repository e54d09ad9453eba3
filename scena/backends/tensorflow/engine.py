"""Runs step blocks with TensorFlow: one compiled loop for any number of steps.

The number of steps in a block never changes results: one step and many run the same compiled code.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from scena.backends.base import Arrays, Engine, PredictionEngine, Specs
from scena.errors import ModelError
from scena.model.building import keras_dtype

READERS = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarHandleOp", "VarIsInitializedOp", "LookupTableFindV2", "Assert",
           "PartitionedCall", "StatefulPartitionedCall", "If", "While", "Case"}  # fmt: skip
"""Operations that TensorFlow calls stateful and that change nothing. Bodies of loops and of functions are looked at by themselves."""


class TensorFlowEngine(Engine):
    """Trains, validates and predicts with one model; created as by `Backend.create_engine`."""

    def __init__(
        self, model: keras.Model, input_specs: Specs, target_specs: Specs, *, eager: bool = False, xla: bool = False
    ) -> None:
        self._model = model
        self._eager = eager
        self._xla = xla
        self._names: dict[str, list[str]] = {}
        self._data = {"inputs": _signature(input_specs), "targets": _signature(target_specs)}
        self._blocks = block_signature(input_specs, target_specs)
        self.retrace()

    def retrace(self) -> None:
        model = self._model
        # not the whole block: XLA would compile again for each number of steps
        self._train_step = tf.function(model.train_step, jit_compile=True) if self._xla else model.train_step
        self._test_step = tf.function(model.test_step, jit_compile=True) if self._xla else model.test_step
        self._train = self._compile(self._train_steps, self._blocks)
        self._test = self._compile(self._test_steps, self._blocks)
        self._evaluate = self._compile(self._evaluate_step, self._data)

    def load(self, inputs: Arrays, targets: Arrays) -> tuple[Any, Any]:
        if self._eager:
            return inputs, targets
        return _tensors(inputs, self._blocks["inputs"]), _tensors(targets, self._blocks["targets"])

    def train(self, inputs: Arrays, targets: Arrays) -> list[dict[str, float]]:
        with self._explaining():
            rows = self._train({"inputs": inputs, "targets": targets}).numpy()
        return [dict(zip(self._names["train"], row.tolist(), strict=True)) for row in rows]

    def test(self, inputs: Arrays, targets: Arrays) -> dict[str, float]:
        with self._explaining():
            row = self._test({"inputs": inputs, "targets": targets}).numpy()
        return dict(zip(self._names["test"], row.tolist(), strict=True))

    def evaluate(self, inputs: Arrays, targets: Arrays) -> Arrays:
        with self._explaining():
            outputs = self._evaluate({"inputs": inputs, "targets": targets})
        return {name: np.asarray(value) for name, value in outputs.items()}

    def graph(self) -> Any:
        return None if self._eager else self._train.get_concrete_function().graph

    def _compile(self, function: Any, signature: Any) -> Any:
        return function if self._eager else tf.function(function, input_signature=[signature])

    def _train_steps(self, block: Any) -> tf.Tensor:
        count = tf.shape(tf.nest.flatten(block)[0])[0]
        rows = tf.TensorArray(tf.float32, size=count)
        for i in tf.range(count):
            rows = rows.write(i, self._row("train", self._train_step((pick(block, i),))))
        return rows.stack()

    def _test_steps(self, block: Any) -> tf.Tensor:
        count = tf.shape(tf.nest.flatten(block)[0])[0]
        rows = tf.TensorArray(tf.float32, size=count)
        for i in tf.range(count):
            rows = rows.write(i, self._row("test", self._test_step((pick(block, i),))))
        return rows.stack()[-1]

    def _evaluate_step(self, data: Any) -> Any:
        outputs = self._model(data, training=False)
        self._model.compute_loss(x=data, y_pred=outputs, training=False)
        return outputs

    def _row(self, kind: str, logs: dict[str, Any]) -> tf.Tensor:
        self._names[kind] = list(logs)
        return tf.stack([tf.cast(value, tf.float32) for value in logs.values()])

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Converts TensorFlow's errors while it traces or runs a step into errors that name the fix."""
        try:
            yield
        except tf.errors.OpError as error:
            if not self._xla:
                raise
            raise ModelError(
                f"XLA cannot run this model: {_xla_reason(str(error.message))} Train without --trainer.xla."
            ) from error
        except Exception as error:
            if isinstance(error.__context__, ModelError):  # autograph wraps it in an error of its own
                raise error.__context__ from None
            if "No gradients provided" not in str(error):
                raise
            raise ModelError(
                "The loss does not depend on any trainable weight, so nothing can be learned: it uses no output of the graph, "
                "or a function without a gradient (argmax, round, a cast to whole numbers), or all layers are frozen."
            ) from error


class TensorFlowPredictor(PredictionEngine):
    """Runs a prediction model batch by batch, compiled once for any batch size."""

    def __init__(self, model: keras.Model, input_specs: Specs, *, eager: bool = False) -> None:
        def call(inputs: Any) -> Any:
            return model(inputs, training=False)

        self._call: Any = call if eager else tf.function(call, input_signature=[_signature(input_specs)])
        self._eager = eager

    @cached_property
    def parallel_calls(self) -> int:  # type: ignore[override]
        """One, where several would need more memory (GPU) or change each other's state; else three: while one makes its batch, the others
        keep the cores busy.
        """
        alone = self._eager or tf.config.list_logical_devices("GPU") or _has_state(self._call.get_concrete_function())
        return 1 if alone else 3

    def predict(self, inputs: Arrays) -> Arrays:
        outputs = self._call({name: tf.convert_to_tensor(value) for name, value in inputs.items()})
        return {name: np.asarray(value) for name, value in outputs.items()}


def _has_state(function: Any) -> bool:
    """Whether a compiled function writes variables, draws random numbers or calls Python: its results depend on the order of calls."""
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for part in graph.library.function for node in part.node_def)]
    definitions = (op_def_registry.get(name) for name in {node.op for node in nodes} - READERS)
    return any(found is not None and found.is_stateful for found in definitions)


def block_signature(input_specs: Specs, target_specs: Specs) -> dict[str, dict[str, tf.TensorSpec]]:
    """The input signature of a step block."""
    return {"inputs": _signature(input_specs, block=True), "targets": _signature(target_specs, block=True)}


def _signature(specs: Specs, block: bool = False) -> dict[str, tf.TensorSpec]:
    lead = (None, None) if block else (None,)
    return {name: tf.TensorSpec((*lead, *spec.shape), keras_dtype(spec), name=name) for name, spec in specs.items()}


def _tensors(arrays: Arrays, signature: dict[str, tf.TensorSpec]) -> dict[str, Any]:
    """Converts the arrays that have the type of the signature; a compiled function casts the others."""
    return {
        name: tf.convert_to_tensor(array) if array.dtype == signature[name].dtype.as_numpy_dtype else array
        for name, array in arrays.items()
    }


def pick(block: Any, i: Any) -> Any:
    """One batch of a block."""
    return tf.nest.map_structure(lambda tensor: tensor[i], block)


def _xla_reason(message: str) -> str:
    """The line of TensorFlow's message that names the operation."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    named = [
        line for line in lines if re.search(r"(?i)determinis|No registered|not support|unsupported|uncompilable", line)
    ]
    return f"{(named or lines or ['no reason given'])[0].rstrip('.')}."
