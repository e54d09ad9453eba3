"""Mistakes in `loss`, `metrics`, `loss_weights` and `sample_weights` that would train or report something else without an error.

All of it is checked on symbolic tensors, before any data is read.
"""

from typing import Any

import keras
import numpy as np

from scena.errors import ModelError
from scena.model.measures.keras_metrics import CalledMetric
from scena.overriding import Overridable, spelled


def named_values(model: type[Overridable], method: str, value: Any) -> dict[str, Any]:
    """What `loss` or `metrics` returned, as a dict of tensors and updates of Keras metrics.

    Args:
        model: the model's class, for errors.
        method: `loss` or `metrics`.
        value: what it returned.
    """
    name = spelled(model, method)
    if method == "metrics" and isinstance(value, list | tuple) and all(isinstance(v, CalledMetric) for v in value):
        names = [called.metric.name for called in value]
        if len(set(names)) < len(names):
            raise ModelError(f"{name} returns {names}: give each metric a name of its own, AUC(name=…).")
        value = dict(zip(names, value, strict=True))
    if not isinstance(value, dict):
        raise ModelError(f"{name} must return a dict of names and tensors. Received: {type(value).__name__}.")
    return {key: _value(f"{name}: {key!r}", item) for key, item in value.items()}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, CalledMetric):
        return value.update
    if isinstance(value, keras.losses.Loss):
        raise ModelError(f"{name} is the object {type(value).__name__}; call it: loss(y_true, y_pred).")
    if isinstance(value, keras.metrics.Metric):
        raise ModelError(f"{name} is the object {type(value).__name__}; return (metric, y_true, y_pred).")
    if isinstance(value, tuple):
        if len(value) < 2 or not isinstance(value[0], keras.metrics.Metric):
            raise ModelError(
                f"{name} must be a tensor or (metric, y_true, y_pred). Received: a tuple of {_kinds(value)}."
            )
        return value
    if not (keras.ops.is_tensor(value) or isinstance(value, keras.KerasTensor | np.ndarray | np.generic | int | float)):
        raise ModelError(f"{name} must be a tensor. Received: {type(value).__name__}.")
    return value


def _kinds(values: tuple[Any, ...]) -> str:
    return ", ".join(type(value).__name__ for value in values) or "nothing"


def check_names(model: type[Overridable], measured: list[str], updates: dict[str, tuple[Any, ...]]) -> None:
    """Refuses names that the history uses itself, and one Keras metric under two names.

    Args:
        model: the model's class, for errors.
        measured: names of losses and averaged metrics.
        updates: the Keras metrics by name, each with its arguments.
    """
    taken = [name for name in [*measured, *updates] if name.startswith(("val_", "lav_"))]
    if taken:
        raise ModelError(
            f"{model.__name__}: {taken[0]!r} cannot be the name of a loss or metric: 'val_' and 'lav_' mark the results of "
            "validation and LAV. Rename it."
        )
    owners: dict[int, str] = {}
    for name, (metric, *_) in updates.items():
        other = owners.setdefault(id(metric), name)
        if other != name:
            raise ModelError(
                f"{spelled(model, 'metrics')} uses one metric object for {other!r} and {name!r}, which would count both as one; "
                "create one for each in __init__."
            )


def check_sample_weights(
    model: type[Overridable],
    weights: Any,
    values: dict[str, Any],
    updates: dict[str, tuple[Any, ...]],
    skipped: bool = False,
) -> None:
    """Refuses weights that would have no effect or another one than meant.

    Args:
        model: the model's class, for errors.
        weights: what `sample_weights` returned.
        values: losses and averaged metrics by name.
        updates: the Keras metrics by name, each with its arguments.
        skipped: whether the graph lacks what some losses or metrics need.
    """
    method = spelled(model, "sample_weights")
    if not isinstance(weights, dict):
        received = type(weights).__name__
        raise ModelError(f"{method} must return a dict of names and tensors. Received: {received}.")
    unknown = sorted(set(weights) - set(values) - set(updates))
    if unknown and not skipped:
        raise ModelError(f"{method} names {unknown}, but there are only {sorted([*values, *updates])}.")
    for name, weight in weights.items():
        shape = _shape(weight)
        if len(shape) > 1 and shape[1:] != (1,) * (len(shape) - 1):
            raise ModelError(
                f"{method}: {name!r} must have one weight for each sample. Received: shape {shape}. "
                f"Weights within a sample belong into {spelled(model, 'metrics')}"
                f"{'' if name in updates else ' or ' + spelled(model, 'loss')}."
            )
        if name in updates:
            raise ModelError(
                f"{method}: {name!r} is a Keras metric; it takes its weights as a fourth entry: "
                "(metric, y_true, y_pred, weights)."
            )
        if name in values and shape and not _shape(values[name]):
            raise ModelError(
                f"{method}: {name!r} is a single number for the whole batch, so samples cannot be weighted "
                "any more. Return one value for each sample, for example keras.losses.binary_crossentropy on tensors of shape "
                "(batch, 1), or a Loss with reduction='none'."
            )


def _shape(value: Any) -> tuple[int | None, ...]:
    return tuple(value.shape) if hasattr(value, "shape") else ()
