"""Pretrained weights for networks of the zoo, from keras.applications or a file; copying weights between equal networks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from scena.errors import ModelError
from scena.model.state.archive import check_hdf5_file
from scena.model.zoo.catalogue import MODELS


class ImageNormalization(NamedTuple):
    """The normalization of the images that weights of keras.applications were trained on."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


IMAGENET = ImageNormalization((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
FROM_MINUS_ONE = ImageNormalization((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
# 0..255 without the mean, and blue first: the order is corrected in the first kernel
CAFFE = ImageNormalization((123.68 / 255, 116.779 / 255, 103.939 / 255), (1 / 255, 1 / 255, 1 / 255))


def normalization_of(application: str) -> ImageNormalization:
    """The normalization for the weights of an application."""
    if application.startswith("EfficientNet"):
        return IMAGENET
    like_caffe = application.startswith(("ResNet", "VGG")) and not application.endswith("V2")
    return CAFFE if like_caffe else FROM_MINUS_ONE


def load_pretrained(network: keras.Model, weights: str, skip_classifier: bool | None = None) -> bool:
    """Loads weights from keras.applications ("imagenet", downloaded by Keras) or from a local file.

    Args:
        network: made by `create_network`; for those of keras.applications of real numbers and factor 1.
        weights: "imagenet", or the path of a file: a `.keras` model, the `.weights.h5` of this network, or an `.h5` file as
            keras.applications downloads it ("notop" in its name: without the classifier).
        skip_classifier: the classifier stays as it is; default: if it does not fit, since there are other classes.

    Returns:
        Whether the classifier was loaded too.

    Raises:
        ModelError: the network is not in keras.applications, or the weights do not fit.
    """
    path = Path(weights)
    if weights != "imagenet" and not path.is_file():
        raise ModelError(f'weights must be "imagenet" or an existing file. Received: {weights!r}')
    try:
        if weights.endswith(".weights.h5"):
            check_hdf5_file(path)
            network.load_weights(path)
            return True
        if weights == "imagenet" or path.suffix == ".h5":
            return _from_application(network, weights, skip_classifier)
        source = keras.saving.load_model(path, compile=False)
    except (ValueError, TypeError, OSError, KeyError) as error:
        why = " ".join(str(error).partition("Target variable:")[0].split())
        hint = " If it has other classes, save that network as a .keras file: its classifier is then left out."
        whole = hint if weights.endswith(".weights.h5") else ""
        raise ModelError(f"The weights {weights} cannot be loaded into {network.name}: {why}{whole}") from error
    return copy_weights(source, network, skip_classifier)


def _from_application(network: keras.Model, weights: str, skip_classifier: bool | None) -> bool:
    application = MODELS[network.name].application if network.name in MODELS else None
    if application is None:
        having = [name for name, entry in MODELS.items() if entry.application]
        raise ModelError(f"keras.applications has no weights for {network.name}; it has them for {', '.join(having)}.")
    create: Any = getattr(keras.applications, application)
    if weights == "imagenet":
        try:
            source = create(weights="imagenet")
        except Exception as error:  # Keras raises a plain Exception where the network fails
            raise ModelError(
                f"Keras cannot fetch the weights of {application}: {error}. Give a file instead of imagenet."
            ) from error
    else:
        check_hdf5_file(Path(weights))
        source = create(weights=None, include_top="notop" not in Path(weights).name)
        source.load_weights(weights)
    copied = copy_weights(source, network, skip_classifier)
    if normalization_of(application) is CAFFE:
        _take_red_first(network)
    return copied


def _take_red_first(network: keras.Model) -> None:
    """Reverses the channels of the first kernel, which was trained with blue first."""
    first = next(iter(weighted_layers(network)))
    kernel = keras.ops.convert_to_numpy(first.kernel)
    first.kernel.assign(kernel[:, :, ::-1, :])


PREPROCESSING = (keras.layers.Normalization, keras.layers.Rescaling)


def copy_weights(source: keras.Model, target: keras.Model, skip_classifier: bool | None = False) -> bool:
    """Copies all weights between two models that connect the same layers in the same way; names do not matter.

    Axes of size one do not matter either: a convolution of 1 × 1 on one pixel is a dense layer.

    Args:
        source: where the weights come from; normalisation layers inside it are skipped.
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
