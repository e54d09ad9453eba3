"""Finding mistakes in a model: running it once on real data with messages that name layer, key and shape."""

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import keras
import numpy as np

from scena.model.errors import ModelError
from scena.model.graph import RootGraph, Tensors
from scena.model.measures.called_metrics import recorded_calls
from scena.model.measures.checks import named_values
from scena.model.measures.metric_results import is_data
from scena.model.model import ModelBase
from scena.model.precision import full_precision

logger = logging.getLogger(__name__)

T = TypeVar("T")


def check_on_real_data(model: ModelBase[Any], root: RootGraph, inputs: Tensors, targets: Tensors) -> None:
    """Runs graph, losses and metrics op by op on one batch, and says what each of them looks like.

    Raises:
        ModelError: names the part, the layer in which it failed, the line of code, and what it was given.
    """
    filtering = keras.config.is_traceback_filtering_enabled()
    keras.config.disable_traceback_filtering()
    try:
        inputs = {name: keras.ops.convert_to_tensor(value) for name, value in inputs.items()}
        targets = {name: keras.ops.convert_to_tensor(value) for name, value in targets.items()}
        given = {"inputs": inputs, "targets": targets}
        # Keras builds a layer that only holds others by a symbolic call, whose error it swallows; they are called as they are
        for layer in root._flatten_layers():
            if type(layer).build is keras.layers.Layer.build:
                layer.built = True
        _say("input", inputs)
        _say("target", targets)
        predicted = _run("the prediction graph", lambda: _named(root, root(inputs)), given)
        _say("output of the prediction graph", predicted)
        outputs = _run("the training graph", lambda: _named(root, root(inputs, targets=targets, training=True)), given)
        _say("output of the training graph", outputs)
        outputs = full_precision(outputs)
        given["outputs"] = outputs
        seen = _run("pre_proc_targets", lambda: root.graph.pre_proc_targets(inputs, targets), given)
        losses = _run("_loss", lambda: model.loss(inputs, seen, outputs), given)
        _say("loss", losses)
        metrics = _run("_metric", lambda: _metrics(model, inputs, seen, outputs), given)
        for name, value in metrics.items():
            if isinstance(value, tuple):
                _run(f"the metric {name!r}", lambda value=value: value[0].update_state(*value[1:]), given)  # type: ignore[misc]
        results = {name: value[0].result() if isinstance(value, tuple) else value for name, value in metrics.items()}
        _say("metric", {name: value for name, value in results.items() if not is_data(value)})
        for metric in model.keras_metrics():
            metric.reset_state()
    finally:
        if filtering:
            keras.config.enable_traceback_filtering()


def _metrics(model: ModelBase[Any], inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
    with recorded_calls(model.keras_metrics()):
        value = model.metrics(inputs, targets, outputs)
    return named_values(type(model).__name__, "_metric", value)


def _named(root: RootGraph, outputs: Any) -> Tensors:
    if not isinstance(outputs, dict):
        raise ModelError(
            f"{type(root.graph).__name__} must return a dict of named outputs. Received: {type(outputs).__name__}."
        )
    return outputs


def _run(what: str, function: Callable[[], T], given: dict[str, Tensors]) -> T:
    try:
        return function()
    except Exception as error:
        layer, line = _place(error.__traceback__)
        inside = f" in the layer {layer}" if layer else ""
        parts = [f"{part}: " + (", ".join(f"{name} {_shape(value)}" for name, value in tensors.items()) or "none")
                 for part, tensors in given.items()]  # fmt: skip
        problem = f"there is no {error}" if isinstance(error, KeyError) else str(error).strip().splitlines()[0]
        raise ModelError(f"{what} fails{inside} at {line}: {problem}\n  " + "\n  ".join(parts)) from error


def _place(trace: TracebackType | None) -> tuple[str, str]:
    """The innermost layer that was being called, and the last line of code that is not a library's."""
    layer, line = "", "an unknown place"
    for frame, number in traceback.walk_tb(trace):
        owner = frame.f_locals.get("self")
        if isinstance(owner, keras.layers.Layer) and not isinstance(owner, RootGraph):
            layer = owner.path or owner.name
        file = frame.f_code.co_filename
        if not any(part in file for part in ("site-packages", "scena/model/debugging", "scena/model/graph", "<")):
            line = f"{Path(file).name}:{number}"
    return layer, line


def _say(what: str, tensors: Any) -> None:
    if not isinstance(tensors, dict):
        return
    for name, value in tensors.items():
        array = keras.ops.convert_to_numpy(value)
        span = ""
        if array.size and array.dtype.kind in "biuf":
            numbers = array.astype("float64")
            bad = int(np.size(numbers) - np.isfinite(numbers).sum())
            finite = numbers[np.isfinite(numbers)]
            span = f", {finite.min():.4g} to {finite.max():.4g}" if finite.size else ""
            span += f", {bad} NOT FINITE" if bad else ""
        logger.info("%s %s: %s%s", what, name, _shape(value), span)


def _shape(value: Any) -> str:
    return f"{tuple(value.shape)} {keras.backend.standardize_dtype(value.dtype)}"
