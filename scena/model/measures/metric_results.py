"""Results of Keras metrics: numbers, or data for TensorBoard."""

from typing import Any

import keras
import numpy as np

from scena.model.errors import ModelError
from scena.model.tensorboard_data import TensorBoardData


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
