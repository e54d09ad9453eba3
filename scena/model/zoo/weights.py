"""Weights for networks of the zoo from others of the same shape, above all those of keras.applications."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np

from scena.model.errors import ModelError
from scena.model.zoo.catalogue import MODELS

PREPROCESSING = (keras.layers.Normalization, keras.layers.Rescaling)


def copy_weights(source: keras.Model, target: keras.Model, skip_classifier: bool = False) -> None:
    """Copies all weights between two models that connect the same layers in the same way; names do not matter.

    Axes of size one do not matter either: a convolution of 1 × 1 on one pixel is a dense layer.

    Args:
        source: where the weights come from; normalisation of the picture inside it is left out.
        target: where they go.
        skip_classifier: the last layer with weights stays as it is, since its number of classes may differ.

    Raises:
        ModelError: the layers do not fit; nothing was copied.
    """
    sources = [layer for layer in weighted_layers(source) if not isinstance(layer, PREPROCESSING)]
    targets = list(weighted_layers(target))
    if len(sources) != len(targets):
        raise ModelError(
            f"{source.name} has {len(sources)} layers with weights and {target.name} has {len(targets)}; they must be the same network."
        )
    pairs = list(zip(sources, targets, strict=True))
    copies = [(to, _fitted(one, to)) for one, to in (pairs[:-1] if skip_classifier else pairs)]
    for layer, values in copies:
        layer.set_weights(values)


def load_pretrained(network: keras.Model, weights: str, skip_classifier: bool = False) -> None:
    """Loads weights from keras.applications ("imagenet", downloaded by Keras) or from a local Keras file.

    Args:
        network: made by `create_network`, real numbers and factor 1.
        weights: "imagenet", or the path of a `.keras` model or of a `.weights.h5` file of this network.
        skip_classifier: the classifier stays as it is.

    Raises:
        ModelError: the network is not in keras.applications, or the weights do not fit.
    """
    if str(weights).endswith(".weights.h5"):
        network.load_weights(weights)
        return
    if weights != "imagenet":
        if not Path(weights).is_file():
            raise ModelError(f'weights is "imagenet" or a file that exists. Received: {weights!r}')
        source = keras.saving.load_model(weights, compile=False)
    else:
        application = MODELS[network.name].application if network.name in MODELS else None
        if application is None:
            having = [name for name, entry in MODELS.items() if entry.application]
            raise ModelError(
                f"keras.applications has no weights for {network.name}; it has them for {', '.join(having)}."
            )
        source = getattr(keras.applications, application)(weights="imagenet")
    copy_weights(source, network, skip_classifier)


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


def _fitted(source: Any, target: Any) -> list[np.ndarray]:
    values = source.get_weights()
    shapes = [tuple(weight.shape) for weight in target.weights]
    if [_squeezed(value.shape) for value in values] != [_squeezed(shape) for shape in shapes]:
        raise ModelError(
            f"The weights of {source.name}, {[value.shape for value in values]}, do not fit {target.name}, which has {shapes}."
        )
    return [value.reshape(shape) for value, shape in zip(values, shapes, strict=True)]


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
