"""Finding mistakes in a model: one line for an error of Keras in a user's code, and a run on real data that names layer, key and shape."""

import logging
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import keras
import numpy as np

from scena.errors import ModelError, ScenaError
from scena.model.building import full_precision
from scena.model.graph import RootGraph, Tensors
from scena.model.measures.values import is_data, named_values, recorded_calls
from scena.model.model import ModelBase
from scena.overriding import spelled
from scena.user_code import reason, user_line

logger = logging.getLogger(__name__)

T = TypeVar("T")
DEBUG_HINT = "--scenario.debug_graph_construction runs it on real data and shows all shapes."
_OP = re.compile(r"^\{\{function_node .*?\}\} | \[Op:\w+\]( name:.*)?$")
"""What TensorFlow writes around the error of an operation."""
_BOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)


@contextmanager
def explaining_graph(name: str) -> Iterator[None]:
    """While the block builds the graph of this name, an error becomes one line.

    Raises:
        ModelError: what went wrong in which line of the user's code.
    """
    try:
        yield
    except ScenaError:
        raise
    except Exception as error:
        raise ModelError(f"{name} cannot be built{describe_failure(error)} {DEBUG_HINT}") from error


def describe_failure(error: BaseException) -> str:
    """` at FILE:LINE: REASON.` of an error that came through Keras."""
    line = user_line(error)
    place = f" at {line}" if line is not None else ""
    return f"{place}: {_without_wrapping(error).rstrip('.')}."


def _without_wrapping(error: BaseException) -> str:
    """The reason inside the messages that each layer on the way has put around it."""
    text = str(error.args[0]) if error.args else str(error)
    if isinstance(error, KeyError):
        text = text.encode().decode("unicode_escape", errors="replace") if "\\x1b" in text else text
    if "Exception encountered when calling" not in text:
        return f"there is no {text!r}" if isinstance(error, KeyError) else reason(error)
    inner = text.rpartition("Exception encountered when calling")[2]
    found = _BOLD.search(inner)
    said = " ".join((found[1] if found else inner).split())
    said = re.sub(r" for '\{\{node .*?\}\} = .*?' with", " with", said)
    return f"there is no {said!r}" if isinstance(error, KeyError) else said


def check_on_real_data(model: ModelBase[Any], root: RootGraph, inputs: Tensors, targets: Tensors) -> None:
    """Runs graph, losses and metrics op by op on one batch, and logs what each of them looks like.

    Raises:
        ModelError: names the part, the layer in which it failed, the line of code, and its inputs.
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
        _log("input", inputs)
        _log("target", targets)
        predicted = _run("the prediction graph", lambda: _named(root, root(inputs)), given)
        _log("output of the prediction graph", predicted)
        outputs = _run("the training graph", lambda: _named(root, root(inputs, targets=targets, training=True)), given)
        _log("output of the training graph", outputs)
        outputs = full_precision(outputs)
        given["outputs"] = outputs
        seen = _run("pre_proc_targets", lambda: root.graph.pre_proc_targets(inputs, targets), given)
        losses = _run(spelled(type(model), "loss"), lambda: model.loss(inputs, seen, outputs), given)
        _log("loss", losses)
        metrics = _run(spelled(type(model), "metrics"), lambda: _metrics(model, inputs, seen, outputs), given)
        for name, value in metrics.items():
            if isinstance(value, tuple):
                _run(f"the metric {name!r}", lambda value=value: value[0].update_state(*value[1:]), given)  # type: ignore[misc]
        results = {name: value[0].result() if isinstance(value, tuple) else value for name, value in metrics.items()}
        _log("metric", {name: value for name, value in results.items() if not is_data(value)})
        for metric in model.keras_metrics():
            metric.reset_state()
    finally:
        if filtering:
            keras.config.enable_traceback_filtering()


def _metrics(model: ModelBase[Any], inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any]:
    with recorded_calls(model.keras_metrics()):
        value = model.metrics(inputs, targets, outputs)
    return named_values(type(model), "metrics", value)


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
        problem = (
            f"there is no {error}" if isinstance(error, KeyError) else _OP.sub("", str(error).strip().splitlines()[0])
        )
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


def _log(what: str, tensors: Any) -> None:
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
