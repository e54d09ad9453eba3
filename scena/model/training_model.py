"""The Keras model of a training step: a graph with the losses and metrics of a `ModelBase` around it.

It overrides only the public hooks `compute_loss` and `compute_metrics`, so Keras' own `train_step` works on every backend.
"""

from typing import Any

import keras
from keras import ops

from scena.errors import ModelError
from scena.model.building import full_precision
from scena.model.debugging import describe_failure, explaining_graph
from scena.model.graph import RootGraph, Tensors
from scena.model.measures.missing_outputs import MissingOutputs
from scena.model.measures.values import (
    Updates,
    build_metric,
    check_names,
    check_number,
    check_sample_weights,
    check_shape,
    data_of,
    gives_data,
    is_data,
    named_values,
    recorded_calls,
)
from scena.model.model import ModelBase
from scena.model.state.untracked import check_nothing_to_train
from scena.overriding import spelled


class _MissedError(Exception):
    """An output is missing, and it is not known yet which ones the training graph has."""


class Measures:
    """Losses and metrics of one batch, as the model defines them.

    Args:
        model: has `loss` and `metrics`.
        root: has `pre_proc_targets`.
        missing: outputs that the graph does not have: losses and metrics that need them are skipped; without it they raise an error.
    """

    def __init__(self, model: ModelBase[Any], root: RootGraph, missing: MissingOutputs | None = None) -> None:
        self.model = model
        self._root = root
        self._missing = missing
        self.skipped: dict[str, list[str]] = {}
        """Names of skipped losses (key `loss`) and metrics (key `metrics`); an empty list means all of them."""

    def compute(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> tuple[Tensors, Tensors, Updates]:
        """The named losses, the named metrics that are averaged, and the Keras metrics with the arguments of their update."""
        targets = self._root.graph.pre_proc_targets(inputs, targets)
        losses = self._values("loss", inputs, targets, outputs)
        metrics = self._values("metrics", inputs, targets, outputs)
        updates = {name: value for name, value in metrics.items() if isinstance(value, tuple)}
        return losses, {name: value for name, value in metrics.items() if name not in updates}, updates

    def sample_weights(self, inputs: Tensors, targets: Tensors) -> Tensors:
        """The model's weights per sample."""
        return self.model.sample_weights(inputs, self._root.graph.pre_proc_targets(inputs, targets))

    def trial(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> tuple[list[str], list[str], Updates]:
        """The names of losses and averaged metrics, and the Keras metrics, found on symbolic tensors."""
        found: list[Any] = []
        failure: list[Exception] = []

        def compute(inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
            try:
                losses, means, updates = self.compute(inputs, targets, outputs)
                weights = self.sample_weights(inputs, targets)
                check_sample_weights(
                    type(self.model), weights, {**losses, **means}, updates, skipped=bool(self.skipped)
                )
                for name, value in {**losses, **means}.items():
                    check_shape(type(self.model), name, value)
            except Exception as error:
                failure.append(error)
                raise
            found[:] = [list(losses), list(means), updates]
            return {**losses, **means}

        try:
            _Symbolic(compute)(inputs, targets, outputs)
        except Exception as error:
            first = failure[0] if failure else error  # as it was raised, before Keras wrote about its layer around it
            if isinstance(first, _MissedError) and self._missing is not None:
                self._missing.find()
                return self.trial(inputs, targets, outputs)
            if isinstance(first, ModelError | _MissedError):
                raise first from None
            raise ModelError(f"{type(self.model).__name__}: a loss or metric fails{describe_failure(first)}") from error
        return found[0], found[1], found[2]

    def traced(self, method: str, inputs: Tensors, targets: Tensors, outputs: Tensors) -> list[Any]:
        """The tensors of `loss` or `metrics`, to trace how they are computed."""
        values = self._values(method, inputs, self._root.graph.pre_proc_targets(inputs, targets), outputs)
        return [value[1:] if isinstance(value, tuple) else value for value in values.values()]

    def _values(self, method: str, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
        model = self.model
        try:
            return self._call(method, inputs, targets, outputs)
        except KeyError as error:
            if self._missing is not None and self._missing.specs is None:
                raise _MissedError from error
            if self._missing is None or error.args[0] not in self._missing.names():
                raise ModelError(
                    f"{spelled(type(model), method)} asks for {error.args[0]!r}. There are inputs {sorted(inputs)}, "
                    f"targets {sorted(targets)} and outputs {sorted(outputs)}."
                ) from error
            return self._measurable(method, inputs, targets, outputs)

    def _call(self, method: str, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
        model = self.model
        with recorded_calls(model.keras_metrics() if method == "metrics" else []):
            value = getattr(model, method)(inputs, targets, outputs)
        return named_values(type(model), method, value)

    def _measurable(self, method: str, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
        """The values that need no missing output; the first call, on symbolic tensors, decides which these are."""
        assert self._missing is not None
        found = self._missing.measurable(lambda filled: self._call(method, inputs, targets, filled), outputs)
        if found is None and self.skipped.get(method):
            raise ModelError(
                f"{spelled(type(self.model), method)} cannot run op by op without the outputs {', '.join(self._missing.names())}, "
                "which the prediction graph does not return: it calls functions of the backend. Remove --run_eagerly, or use keras.ops."
            )
        values, skipped = found if found is not None else ({}, [])
        self.skipped[method] = skipped
        return values

    def report_skipped(self, subject: str = "the prediction graph") -> list[str]:
        """The skipped losses and metrics and the reason, for the log."""
        return [
            f"LAV does not measure the {'losses' if method == 'loss' else 'metrics'}"
            + (f" {', '.join(names)}: they need" if names else f": {spelled(type(self.model), method)} needs")
            + f" {', '.join(self._missing.names())}, which {subject} does not return."
            for method, names in self.skipped.items()
            if self._missing is not None
        ]


class _Symbolic(keras.layers.Layer):
    """A function as a layer: the public way to run any backend's code on symbolic tensors."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self._function = function

    def call(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        result: Tensors = self._function(inputs, targets, outputs)
        return result


class TrainingModel(keras.Model):
    """Trains and validates a graph. Its one argument is `{"inputs": …, "targets": …}`, both dicts of batched tensors.

    Args:
        model: the scenario's model: losses, weights, metrics.
        root: the graph that is trained.
        inputs: symbolic inputs of the graph.
        targets: symbolic targets.
        prediction: run the graph's prediction variant, as LAV does. Losses and metrics that need an output of the training
            variant alone are then skipped.
        outputs: symbolic outputs to measure, if they are not those of the graph.
    """

    def __init__(
        self,
        model: ModelBase[Any],
        root: RootGraph,
        inputs: Tensors,
        targets: Tensors,
        *,
        prediction: bool = False,
        outputs: Tensors | None = None,
        **kwargs: Any,
    ):
        super().__init__(autocast=False, **kwargs)  # targets keep their precision, whatever the layers compute in
        self.root = root
        self._prediction = prediction
        self._loss_weights = model.loss_weights()
        if outputs is None:
            with explaining_graph(type(root.graph).__name__):
                outputs = root(inputs) if prediction else root(inputs, targets=targets)
        missing = (
            MissingOutputs(lambda: {**root(inputs), **root(inputs, targets=targets)}, list(outputs))
            if prediction
            else None
        )
        self.measures = Measures(model, root, missing)
        losses, metrics, updates = self.measures.trial(inputs, targets, outputs)
        check_nothing_to_train(model)
        check_names(model, losses, metrics, updates, self._loss_weights, self.measures.skipped)
        for metric, *arguments in updates.values():
            build_metric(metric, arguments)
        self.updated_metrics = {name: update[0] for name, update in updates.items()}
        self._data_metrics = {name for name, metric in self.updated_metrics.items() if gives_data(metric)}
        # LAV sums in double precision, so that its numbers do not depend on the batch size (JAX has no float64 by default)
        dtype = "float64" if prediction and keras.backend.backend() == "tensorflow" else None
        self.total = keras.metrics.Mean(name="loss", dtype=dtype)
        self.loss_means = {
            name: keras.metrics.Mean(name=name, dtype=dtype) for name in losses if len(losses) > 1 or name != "loss"
        }
        self.metric_means = {name: keras.metrics.Mean(name=name, dtype=dtype) for name in metrics}

    def call(self, x: dict[str, Tensors], training: bool | None = None) -> Tensors:
        if self._prediction:
            outputs: Tensors = self.root(x["inputs"])
        else:
            outputs = self.root(x["inputs"], targets=x["targets"], training=training)
        return full_precision(outputs)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The weighted sum of the losses plus penalties of layers; also counts each loss and metric."""
        del y, sample_weight, training
        inputs, targets = x["inputs"], x["targets"]
        losses, metrics, updates = self.measures.compute(inputs, targets, y_pred)
        weights = self.measures.sample_weights(inputs, targets)
        size = ops.cast(ops.shape(next(iter(inputs.values())))[0], "float32")
        total: Any = 0.0
        for name, value in losses.items():
            mean = _mean(value, weights.get(name))
            if name in self.loss_means:
                self.loss_means[name].update_state(mean, sample_weight=size)
            total = total + self._loss_weights.get(name, 1.0) * mean
        for name, value in metrics.items():
            _count(self.metric_means[name], value, weights.get(name), size)
        for metric, *arguments in updates.values():
            metric.update_state(*_counted(metric, arguments))
        for penalty in self.losses:
            if len(penalty.shape) > 0:
                raise ModelError(
                    f"A layer calls add_loss with a tensor of shape {tuple(penalty.shape)}, whose sum would depend on the batch size. "
                    "Add a single number, for example ops.mean(…)."
                )
            total = total + ops.cast(penalty, "float32")
        self.total.update_state(total, sample_weight=size)
        return total

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """The running values of this epoch, by name (they were counted in `compute_loss`)."""
        del x, y, y_pred, sample_weight
        return self.results()

    def no_means(self) -> set[str]:
        """Metrics that are no means over samples, such as AUC; all others are, unless samples have weights."""
        return {name for name, metric in self.updated_metrics.items() if not isinstance(metric, keras.metrics.Mean)}

    def state_variables(self) -> list[keras.Variable]:
        """Further variables for checkpoints, if they are not those of a layer, a metric or an optimizer that is an attribute."""
        return []

    def results(self) -> dict[str, Any]:
        """Total loss, each loss, each metric, as running means."""
        results = {"loss": self.total.result()} if "loss" not in self.measures.skipped else {}
        results |= {name: metric.result() for name, metric in self.loss_means.items()}
        results |= {name: metric.result() for name, metric in self.metric_means.items()}
        for name, metric in self.updated_metrics.items():
            if name in self._data_metrics:
                continue
            result = metric.result()
            if is_data(result):
                self._data_metrics.add(name)
                continue
            check_number(name, result, spelled(type(self.measures.model), "metrics"))
            results[name] = result
        return results

    def data_results(self) -> dict[str, Any]:
        """Results of Keras metrics that are not numbers: data for TensorBoard, such as a PR curve."""
        return {name: data_of(self.updated_metrics[name]) for name in sorted(self._data_metrics)}


def _counted(metric: keras.metrics.Metric, arguments: list[Any]) -> list[Any]:
    """The arguments of a Keras mean, in a shape in which each value counts the same, whichever batch it is in.

    Keras averages `(batch, length)` values and weights within each sample first, so that values of a short batch count more than those
    of a long one; and functions such as `mean_absolute_error` average `(batch,)` values over the batch, so that each batch counts the same.
    """
    if not isinstance(metric, keras.metrics.Mean):
        return arguments
    count = 2 if isinstance(metric, keras.metrics.MeanMetricWrapper) else 1
    values, weights = arguments[:count], arguments[count:]
    rank = len(weights[0].shape) if weights and weights[0] is not None else 0
    if rank > 1 and all(tuple(value.shape)[:rank] == tuple(weights[0].shape) for value in values):
        values = [ops.reshape(value, (-1, *value.shape[rank:])) for value in values]
        weights = [ops.reshape(weights[0], (-1,))]
    if count == 2 and all(len(value.shape) == 1 for value in values):
        values = [ops.expand_dims(value, -1) for value in values]
    return [*values, *weights]


def _mean(value: Any, weights: Any) -> Any:
    value = ops.cast(value, "float32")
    if weights is None or len(value.shape) == 0:
        return ops.mean(value)
    weights = ops.cast(weights, "float32")
    per_sample = ops.mean(ops.reshape(value, (ops.shape(value)[0], -1)), axis=-1)
    return ops.mean(per_sample * ops.reshape(weights, (-1,)))


def _count(metric: keras.metrics.Mean, value: Any, weights: Any, size: Any) -> None:
    value = ops.cast(value, "float32")
    if len(value.shape) == 0:
        metric.update_state(value, sample_weight=size)
        return
    per_sample = ops.mean(ops.reshape(value, (ops.shape(value)[0], -1)), axis=-1)
    metric.update_state(per_sample, sample_weight=None if weights is None else ops.reshape(weights, (-1,)))
