"""What `loss`, `metrics`, `loss_weights` and `sample_weights` return, and mistakes in it that would train or report something else.

Mistakes are found on symbolic tensors, before any data is read. A call of a Keras metric is recorded instead of run:
`self.auc(y_true, y_pred)` stands for `(self.auc, y_true, y_pred)`. A real call would count a batch while the graph is traced and
return a value that is averaged over batches, which is not the metric of all samples.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import ops

from scena.errors import ModelError
from scena.model.model import ModelBase
from scena.model.tensorboard import TensorBoardData
from scena.overriding import Overridable, spelled

Updates = dict[str, tuple[Any, ...]]
"""Keras metrics by name, each with the arguments of its next `update_state`."""


@dataclass(frozen=True)
class CalledMetric:
    """The placeholder for the value of a metric that was called."""

    metric: keras.metrics.Metric
    arguments: tuple[Any, ...]


@contextmanager
def recorded_calls(metrics: list[keras.metrics.Metric]) -> Iterator[None]:
    """Within it, calling one of these metrics updates nothing and returns a `CalledMetric`."""
    for metric in metrics:
        _record(metric)
    try:
        yield
    finally:
        for metric in metrics:
            vars(metric).pop("update_state"), vars(metric).pop("result")


def _record(metric: keras.metrics.Metric) -> None:
    signature = inspect.signature(metric.update_state)
    last: list[CalledMetric] = []

    def update_state(*args: Any, **kwargs: Any) -> None:
        last[:] = [CalledMetric(metric, signature.bind(*args, **kwargs).args)]

    # not setattr: Keras would track them
    vars(metric)["update_state"] = update_state
    vars(metric)["result"] = lambda: last[0]


def build_metric(metric: keras.metrics.Metric, arguments: list[Any]) -> None:
    """Creates the variables that F1Score, R2Score and others of Keras only create in their first update, from the shapes they will get.

    A result may be asked for before the first update, and variables cannot be created inside a compiled step.
    """
    if getattr(metric, "_built", True):
        return
    metric.update_state(*(value if value is None else _zeros(value) for value in arguments))
    metric.reset_state()


def _zeros(value: Any) -> Any:
    if not hasattr(value, "shape"):
        return value
    return ops.zeros([size or 1 for size in value.shape], keras.backend.standardize_dtype(value.dtype))


def check_shape(model: type[Overridable], name: str, value: Any) -> None:
    """Refuses a loss or metric without a shape: TensorFlow's `==` gives one to tensors that cannot be compared.

    Raises:
        ModelError: names it.
    """
    shape = getattr(value, "shape", ())
    if getattr(shape, "rank", 0) is None:
        raise ModelError(
            f"{model.__name__}: the loss or metric {name!r} has no known shape. It compares or combines tensors whose shapes do not fit, "
            "such as one value for each sample and one for each class: check the axes."
        )


def named_values(model: type[Overridable], method: str, value: Any) -> dict[str, Any]:
    """The result of `loss` or `metrics` as a dict of tensors and updates of Keras metrics."""
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
        return (value.metric, *value.arguments)
    if isinstance(value, keras.losses.Loss):
        raise ModelError(f"{name} is the object {type(value).__name__}; call it: loss(y_true, y_pred).")
    if isinstance(value, keras.metrics.Metric):
        raise ModelError(f"{name} is the object {type(value).__name__}; return (metric, y_true, y_pred).")
    if isinstance(value, tuple):
        if len(value) < 2 or not isinstance(value[0], keras.metrics.Metric):
            kinds = ", ".join(type(item).__name__ for item in value) or "nothing"
            raise ModelError(f"{name} must be a tensor or (metric, y_true, y_pred). Received: a tuple of {kinds}.")
        return value
    if not (keras.ops.is_tensor(value) or isinstance(value, keras.KerasTensor | np.ndarray | np.generic | int | float)):
        raise ModelError(f"{name} must be a tensor. Received: {type(value).__name__}.")
    return value


def check_names(
    model: ModelBase[Any],
    losses: list[str],
    metrics: list[str],
    updates: Updates,
    loss_weights: dict[str, float],
    skipped: dict[str, list[str]],
) -> None:
    """Refuses names that stand for something else, or for nothing, and Keras metrics whose state would be lost or shared."""
    kind, method = type(model), spelled(type(model), "loss")
    if not losses and "loss" not in skipped:
        raise ModelError(f"{method} returned no loss; return at least one, for example {{'loss': …}}.")
    if "loss" in losses and len(losses) > 1:
        raise ModelError(f"{method} returns {sorted(losses)}: 'loss' is the name of their sum; rename that one.")
    unknown = set(loss_weights) - set(losses) - set(skipped.get("loss", []))
    if unknown and losses:
        raise ModelError(
            f"{spelled(kind, 'loss_weights')} names {sorted(unknown)}, but {method} returns {sorted(losses)}."
        )
    twice = (set(metrics) | set(updates)) & (set(losses) | {"loss"})
    if twice:
        raise ModelError(
            f"{kind.__name__}: {sorted(twice)} is the name of a loss and of a metric; rename one (the sum of the losses is 'loss')."
        )
    taken = [name for name in [*losses, *metrics, *updates] if name.startswith(("val_", "lav_"))]
    if taken:
        raise ModelError(
            f"{kind.__name__}: {taken[0]!r} cannot be the name of a loss or metric: 'val_' and 'lav_' mark the results of "
            "validation and LAV. Rename it."
        )
    own = {id(metric) for metric in model.keras_metrics()}
    owners: dict[int, str] = {}
    for name, (metric, *_) in updates.items():
        other = owners.setdefault(id(metric), name)
        if other != name:
            raise ModelError(
                f"{spelled(kind, 'metrics')} uses one metric object for {other!r} and {name!r}, which would count both as one; "
                "create one for each in __init__."
            )
        if id(metric) not in own:
            raise ModelError(
                f"{spelled(kind, 'metrics')}: the metric of {name!r} must be created in __init__ and kept as an attribute, so that "
                "its state survives from batch to batch."
            )


def check_sample_weights(
    model: type[Overridable], weights: Any, values: dict[str, Any], updates: Updates, skipped: bool = False
) -> None:
    """Refuses weights that would have no effect, or an unintended one.

    Args:
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
                f"Weights within a sample belong in {spelled(model, 'metrics')}"
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


def is_data(result: Any) -> bool:
    """Whether a metric's result is not a number but data for TensorBoard: serialised (bytes), or `TensorBoardData`."""
    if isinstance(result, bytes | TensorBoardData):
        return True
    return str(getattr(result, "dtype", "")) in ("string", "<dtype: 'string'>", "object")


def gives_data(metric: keras.metrics.Metric) -> bool:
    """Whether the results of a metric will be data, judged by its current one."""
    try:
        return is_data(metric.result())
    except Exception:  # it has no result before its first batch
        return False


def data_of(metric: keras.metrics.Metric) -> Any:
    """The result of such a metric: bytes, or `TensorBoardData`."""
    result = metric.result()
    return result if isinstance(result, bytes | TensorBoardData) else np.asarray(result).item()


def check_number(name: str, value: Any, owner: str) -> None:
    """Raises unless the result of a metric is one number."""
    shape = tuple(getattr(value, "shape", ()))
    if shape:
        raise ModelError(
            f"{owner}: the value of {name!r} is an array of shape {shape}, not a number. Reduce it to one (Keras' metrics take "
            "average='macro' or the like), or measure it in an Evaluator."
        )
