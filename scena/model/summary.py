"""A network in a few lines: its layers with their parameters, and the memory that weights and optimizer take."""

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

ROWS = 8
"""Layers that are listed; what is between the first and the last ones is folded into one line."""


def summarize(graph: keras.layers.Layer, optimizer: keras.optimizers.Optimizer | None = None) -> str:
    """The layers of a graph, with all inside them counted, and totals.

    Args:
        graph: the graph, built.
        optimizer: its variables are counted as memory too.
    """
    layers = _layers(graph)
    while len(layers) == 1 and _layers(layers[0]):  # a graph around one network: that one's layers say more
        layers = _layers(layers[0])
    if len(layers) > ROWS:
        layers = [layer for layer in layers if layer.weights]
    folded = layers[ROWS // 2 : len(layers) - ROWS // 2 + 1] if len(layers) > ROWS else []
    rows = [("layer", "type", "parameters", "trainable")]
    for layer in layers:
        if layer not in folded:
            inside = len([one for one in _layers(layer, recursive=True) if not _layers(one)])
            name = f"{type(layer).__name__} ({inside} layers)" if inside else type(layer).__name__
            rows.append((layer.name, name, *_counts([layer])))
        elif layer is folded[0]:
            rows.append((f"… {len(folded)} more layers", "", *_counts(folded)))
    rows.append(("total", "", *_counts([graph])))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"{name:{widths[0]}}  {kind:{widths[1]}}  {all_weights:>{widths[2]}}  {trainable:>{widths[3]}}"
        for name, kind, all_weights, trainable in rows
    ]
    memory = f"Memory: weights {_size(graph.weights)}"
    if optimizer is not None:
        memory += f", optimizer {_size(optimizer.variables)}"
    return "\n".join([*lines, memory])


def _layers(layer: keras.layers.Layer, recursive: bool = False) -> list[keras.layers.Layer]:
    found: list[Any] = list(layer._flatten_layers(include_self=False, recursive=recursive))
    return [one for one in found if not isinstance(one, keras.layers.InputLayer)]


def _counts(layers: list[keras.layers.Layer]) -> tuple[str, str]:
    every = {id(weight): weight for layer in layers for weight in layer.weights}
    trained = {id(weight): weight for layer in layers for weight in layer.trainable_weights}
    return f"{_count(every.values()):,}", f"{_count(trained.values()):,}"


def _count(weights: Iterable[Any]) -> int:
    return sum(int(np.prod(weight.shape)) for weight in weights)


def _size(variables: Iterable[Any]) -> str:
    size = float(sum(int(np.prod(each.shape)) * _item_size(each.dtype) for each in variables))
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _item_size(dtype: str) -> int:
    name = keras.backend.standardize_dtype(dtype)
    return {"bfloat16": 2}.get(name) or np.dtype(name).itemsize
