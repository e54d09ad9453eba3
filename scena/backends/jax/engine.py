"""Runs step blocks with JAX: one compiled step, called once for each batch of a block.

JAX compiles again for each shape. So a step block is not one program, as with TensorFlow: its length would be part of the shape,
and the last digits could depend on it.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import jax
import keras
import numpy as np

from scena.backends.base import Arrays, Engine, PredictionEngine, Specs
from scena.backends.selection import tensorflow_only
from scena.errors import ModelError
from scena.model.building import keras_dtype

State = tuple[list[Any], ...]
"""The values of groups of variables."""


class JaxEngine(Engine):
    """Trains, validates and predicts with one model, whose steps have the form that Keras has for JAX."""

    def __init__(self, model: keras.Model, input_specs: Specs, target_specs: Specs, *, eager: bool = False) -> None:
        _check_types({**input_specs, **target_specs})
        _check_step(model, "train_step")
        _check_step(model, "test_step")
        self._model = model
        model.built = True  # its variables exist already; Keras would run it once more to find that out
        self._eager = eager
        self.retrace()

    def retrace(self) -> None:
        model, eager = self._model, self._eager
        # new functions: JAX caches compiled code by function
        self._train_step = model.train_step if eager else jax.jit(_another(model.train_step), donate_argnums=0)
        self._test_step = model.test_step if eager else jax.jit(_another(model.test_step))
        self._evaluate_step = self._evaluated if eager else jax.jit(_another(self._evaluated))

    def train(self, inputs: Arrays, targets: Arrays) -> list[dict[str, float]]:
        model = self._model
        groups = (
            model.trainable_variables, model.non_trainable_variables, model.optimizer.variables, model.metrics_variables
        )  # fmt: skip
        state = _unshared(_read(groups))
        rows = []
        for data in _batches(inputs, targets):
            logs, state = self._train_step(state, (data,))
            rows.append(logs)
        _write(groups, state)
        return [_numbers(row) for row in jax.device_get(rows)]

    def test(self, inputs: Arrays, targets: Arrays) -> dict[str, float]:
        model = self._model
        groups = (model.trainable_variables, model.non_trainable_variables, model.metrics_variables)
        state = _read(groups)
        logs: dict[str, Any] = {}
        for data in _batches(inputs, targets):
            logs, state = self._test_step(state, (data,))
        _write(groups, state)
        return _numbers(jax.device_get(logs))

    def evaluate(self, inputs: Arrays, targets: Arrays) -> Arrays:
        model = self._model
        groups = (model.trainable_variables, model.non_trainable_variables, model.metrics_variables)
        outputs, state = self._evaluate_step(_read(groups), {"inputs": inputs, "targets": targets})
        _write(groups, state)
        return _own_arrays(outputs)

    def graph(self) -> None:
        """There is none of TensorFlow."""

    def _evaluated(self, state: State, data: Any) -> tuple[Any, State]:
        trainable, non_trainable, metrics = state
        _, (_, outputs, non_trainable, metrics) = self._model.compute_loss_and_updates(
            trainable, non_trainable, metrics, data, None, None, training=False
        )
        return outputs, (trainable, non_trainable, metrics)


class JaxPredictor(PredictionEngine):
    """Runs a prediction model batch by batch, compiled once for each shape of a batch."""

    def __init__(self, model: keras.Model, input_specs: Specs, *, eager: bool = False) -> None:
        def call(state: State, inputs: Any) -> Any:
            outputs, _ = model.stateless_call(*state, inputs, training=False)
            return outputs

        _check_types(input_specs)
        self._groups = (model.trainable_variables, model.non_trainable_variables)
        self._call = call if eager else jax.jit(call)

    def predict(self, inputs: Arrays) -> Arrays:
        return _own_arrays(self._call(_read(self._groups), inputs))


def _another(function: Any) -> Any:
    return lambda *arguments: function(*arguments)


def _batches(inputs: Arrays, targets: Arrays) -> list[dict[str, Arrays]]:
    count = len(next(iter({**inputs, **targets}.values())))
    return [
        {
            "inputs": {name: array[i] for name, array in inputs.items()},
            "targets": {name: array[i] for name, array in targets.items()},
        }
        for i in range(count)
    ]


def _read(groups: Sequence[list[Any]]) -> State:
    return tuple([variable.value for variable in group] for group in groups)


def _unshared(state: State) -> State:
    """The values, each with its own memory: a step donates its memory, and two variables may share one array."""
    seen: set[int] = set()

    def own(value: Any) -> Any:
        if id(value) in seen:
            return jax.numpy.copy(value)
        seen.add(id(value))
        return value

    return tuple([own(value) for value in group] for group in state)


def _write(groups: Sequence[list[Any]], state: State) -> None:
    for group, values in zip(groups, state, strict=True):
        for variable, value in zip(group, values, strict=True):
            variable.assign(value)


def _numbers(logs: dict[str, Any]) -> dict[str, float]:
    return {name: float(np.float32(value)) for name, value in logs.items()}


def _own_arrays(outputs: dict[str, Any]) -> Arrays:
    """Copies: JAX arrays are read-only, and post-processing may write to them."""
    return {name: np.array(value) for name, value in outputs.items()}


def _check_types(specs: Specs) -> None:
    for name, spec in specs.items():
        if keras_dtype(spec) == "string":
            raise tensorflow_only(f"{name!r} has the type string; text as a tensor", "Encode it in a processor.")


def _check_step(model: Any, name: str) -> None:
    """Keras' step takes (state, data) with JAX and (data) with TensorFlow; one for the wrong backend would fail obscurely."""
    step = getattr(model, name)
    arguments = [
        argument
        for argument in inspect.signature(step).parameters.values()
        if argument.kind in (argument.POSITIONAL_ONLY, argument.POSITIONAL_OR_KEYWORD)
    ]
    if len(arguments) < 2:
        takes = ", ".join(argument.name for argument in arguments)
        raise ModelError(
            f"{type(model).__name__}.{name} is written for TensorFlow: it takes ({takes}). With JAX, Keras calls "
            f"{name}(state, data), which returns (logs, state). Write it that way, or train with KERAS_BACKEND=tensorflow."
        )
