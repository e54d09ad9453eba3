"""Keras metrics that `_metric` calls itself: `self.auc(y_true, y_pred)` stands for `(self.auc, y_true, y_pred)`.

A real call would count a batch while the graph is traced and return a value that is averaged over batches, which is not the
metric of all samples. So calls are recorded instead, and the training model updates the metric.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import keras


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
