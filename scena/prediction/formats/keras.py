"""Keras' own format, made of Keras' own layers only: plain Keras opens it, without Scena and the scenario's code.

`model.keras` of an export has the scenario's layers, which a training continues with. Here they are replaced by what they are made of.
"""

import contextlib
import inspect
import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import keras

from scena.errors import ConversionError, ScenaError, first_line
from scena.prediction.formats.base import Arrays, ExportFormat, Run

INSTEAD = "--format saved_model keeps it as it is."


class PlainKeras(ExportFormat):
    """Writes a `.keras` file for each graph."""

    package = "keras"

    def file_name(self, suffix: str) -> str:
        return f"plain{suffix}.keras"

    def write(self, graph: keras.Model, path: Path, inputs: Arrays) -> None:
        write_plain(graph, path)

    def open(self, path: Path) -> Run:
        model = keras.saving.load_model(path, compile=False)

        def run(inputs: Arrays) -> Arrays:
            outputs = model(
                {name: keras.ops.convert_to_tensor(value) for name, value in inputs.items()}, training=False
            )
            return {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}

        return run


def write_plain(graph: keras.Model, path: Path) -> None:
    """Writes a functional model without layers of other packages.

    Raises:
        ConversionError: a layer has weights of its own, or computes with something else than Keras.
    """
    sources = graph.input if isinstance(graph.input, dict) else {tensor.name: tensor for tensor in graph.inputs}
    inputs = {name: keras.Input(tensor.shape[1:], name=name, dtype=tensor.dtype) for name, tensor in sources.items()}
    try:
        with _dissolving():
            outputs = graph.call(inputs)
    except ScenaError:
        raise
    except Exception as error:  # whatever a layer raises when it meets a symbolic tensor
        raise ConversionError(
            f"{graph.name!r} cannot be written in Keras' own layers: {first_line(error)[:300]} {INSTEAD}"
        ) from error
    with _unique_names(_operations(outputs.values())):
        keras.Model(inputs, outputs, name=graph.name).save(path)
    _check(path)


def _operations(outputs: Iterable[Any]) -> list[Any]:
    """The layers and operations that tensors were made by, each once."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    left = list(outputs)
    while left:
        operation, index, _ = left.pop()._keras_history
        node = operation._inbound_nodes[index]
        if id(node) not in seen:
            seen.add(id(node))
            found[id(operation)] = operation
            left += node.input_tensors
    return list(found.values())


@contextlib.contextmanager
def _dissolving() -> Iterator[None]:
    """Inside, a call of a layer that is not Keras' own leaves only the layers and operations that it is made of.

    Keras has no hook for calls of layers, so the method is replaced for the time of the block.
    """
    original = keras.layers.Layer.__call__

    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        if not _dissolves(layer):
            return original(layer, *args, **kwargs)
        if layer._trainable_variables or layer._non_trainable_variables:
            raise ConversionError(
                f"The layer {type(layer).__name__} ({layer.path}) has weights of its own, which only its code understands. {INSTEAD}"
            )
        if "training" in inspect.signature(layer.call).parameters:
            kwargs.setdefault("training", False)
        return layer.call(*args, **kwargs)

    keras.layers.Layer.__call__ = call
    try:
        yield
    finally:
        keras.layers.Layer.__call__ = original


def _dissolves(layer: Any) -> bool:
    if not _is_kerass(type(layer)):
        return True
    container = isinstance(layer, keras.Sequential) or type(layer).__name__ == "Functional"
    return container and any(not _is_kerass(type(inner)) for inner in layer._flatten_layers(include_self=False))


def _is_kerass(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "keras"


@contextlib.contextmanager
def _unique_names(operations: list[Any]) -> Iterator[None]:
    """Two blocks may have a layer of the same name; side by side, names have to differ."""
    before: dict[int, tuple[Any, str]] = {}
    taken: set[str] = set()
    for operation in operations:
        before[id(operation)] = operation, operation.name
        name, number = operation.name, 1
        while name in taken:
            number += 1
            name = f"{operation.name}_{number}"
        taken.add(name)
        operation.name = name
    try:
        yield
    finally:
        for operation, name in before.values():
            operation.name = name


def _check(path: Path) -> None:
    """Raises if the file names a class of another package, or has code in it."""
    with zipfile.ZipFile(path) as file:
        config = json.loads(file.read("config.json"))
    for found in _classes(config):
        module, name = found.get("module") or "keras", str(found.get("class_name"))
        if name == "Lambda" or name == "__lambda__":
            raise ConversionError(f"A Lambda layer holds Python code, which plain Keras refuses to load. {INSTEAD}")
        if module.split(".")[0] not in ("keras", "builtins"):
            raise ConversionError(
                f"{module}.{name} is inside a layer of Keras, and cannot be written in Keras' own layers. {INSTEAD}"
            )


def _classes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "class_name" in value:
            yield value
        for item in value.values():
            yield from _classes(item)
    elif isinstance(value, list):
        for item in value:
            yield from _classes(item)
