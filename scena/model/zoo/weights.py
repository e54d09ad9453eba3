"""Copying weights between models that connect the same layers; `pretrained.py` gets them from elsewhere."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from scena.model.errors import ModelError

PREPROCESSING = (keras.layers.Normalization, keras.layers.Rescaling)


def copy_weights(source: keras.Model, target: keras.Model, skip_classifier: bool | None = False) -> bool:
    """Copies all weights between two models that connect the same layers in the same way; names do not matter.

    Axes of size one do not matter either: a convolution of 1 × 1 on one pixel is a dense layer.

    Args:
        source: where the weights come from; normalisation of the picture inside it is left out.
        target: where they go.
        skip_classifier: the last layer with weights stays as it is, since its number of classes may differ; None: if it does
            not fit, or if the source has none.

    Returns:
        Whether the last layer was copied too.

    Raises:
        ModelError: the layers do not fit; nothing was copied.
    """
    sources = [layer for layer in weighted_layers(source) if not isinstance(layer, PREPROCESSING)]
    targets = list(weighted_layers(target))
    headless = skip_classifier is not False and len(sources) == len(targets) - 1
    if len(sources) != len(targets) and not headless:
        raise ModelError(
            f"{source.name} has {len(sources)} layers with weights and {target.name} has {len(targets)}; they must be the same network."
        )
    pairs = list(zip(sources, targets, strict=not headless))
    if skip_classifier is None and not headless:
        skip_classifier = not _fits(*pairs[-1])
    skipped = bool(skip_classifier) and not headless
    copies = [(to, _fitted(one, to)) for one, to in (pairs[:-1] if skipped else pairs)]
    for layer, values in copies:
        layer.set_weights(values)
    return not skipped and not headless


def weighted_layers(model: keras.Model) -> Iterator[Any]:
    """The layers that have weights, each after those it depends on, in an order that only the connections decide."""
    seen: set[int] = set()
    stack = [(tensor._keras_history.operation, False) for tensor in reversed(keras.tree.flatten(model.outputs))]
    while stack:
        operation, ready = stack.pop()
        if ready:
            if getattr(operation, "weights", None):
                yield operation
        elif id(operation) not in seen:
            seen.add(id(operation))
            stack.append((operation, True))
            for node in operation._inbound_nodes:
                stack += [(tensor._keras_history.operation, False) for tensor in reversed(node.input_tensors)]


def _fits(source: Any, target: Any) -> bool:
    return [_squeezed(one.shape) for one in source.weights] == [_squeezed(to.shape) for to in target.weights]


def _fitted(source: Any, target: Any) -> list[np.ndarray]:
    values = source.get_weights()
    shapes = [tuple(weight.shape) for weight in target.weights]
    if not _fits(source, target):
        raise ModelError(
            f"The weights of {source.name}, {[value.shape for value in values]}, do not fit {target.name}, which has {shapes}."
        )
    return [value.reshape(shape) for value, shape in zip(values, shapes, strict=True)]


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
