"""Keras metrics in `metrics`: calls that are recorded instead of run, and results that are numbers or data for TensorBoard.

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

from scena.errors import ModelError
from scena.model.tensorboard import TensorBoardData


@dataclass(frozen=True)
class CalledMetric:
    """Takes the place of the value of a metric that was called."""

    metric: keras.metrics.Metric
    arguments: tuple[Any, ...]

    @property
    def update(self) -> tuple[Any, ...]:
        """The metric with the arguments of its next `update_state`."""
        return (self.metric, *self.arguments)


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


def is_data(result: Any) -> bool:
    """Whether a metric's result is not a number but something for TensorBoard: serialised (bytes), or `TensorBoardData`."""
    if isinstance(result, bytes | TensorBoardData):
        return True
    return str(getattr(result, "dtype", "")) in ("string", "<dtype: 'string'>", "object")


def gives_data(metric: keras.metrics.Metric) -> bool:
    """Whether the results of a metric will be data, judged by the one that it has now."""
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
