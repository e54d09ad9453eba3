"""Building a network of the zoo by name."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import keras

from scena.model.errors import ModelError
from scena.model.zoo.catalogue import MODELS, Entry
from scena.model.zoo.namespace import Layers, Setting
from scena.model.zoo.options import Depth, Options
from scena.model.zoo.params import AlgebraParams, DataFormat, Framework, Leave, NetworkParams, WayOut
from scena.params.spelling import did_you_mean


def create_network(
    name: str,
    input_size: Sequence[int] | None = None,
    num_classes: int | None = None,
    factor: int = 1,
    framework: str = Framework.TENSORFLOW,
    data_format: str | None = None,
    *,
    depth: Depth | None = None,
    dropout: float | None = None,
    l2: float = 0.0,
    embedding: int | None = None,
    algebra: AlgebraParams | None = None,
    activation: str | None = None,
) -> keras.Model:
    """Builds a network with random weights.

    Its input is a batch of NHWC pictures, normalised by the caller; its output the logits, in single precision. Two networks differ: those
    for faces give an embedding by default, and DeepPixBiS a dict of the logits and their map.

    Args:
        name: one of `scena zoo`.
        input_size: height, width, channels; default: what the network was made for.
        num_classes: units of the classifier; 0 leaves it out, so that the output is the features; default: the network's own.
        factor: divides the number of channels of every layer.
        framework: "tensorflow", "upstride_real", "upstride_type1", "upstride_type2" or "upstride_type3".
        data_format: "NHWC" or "NCHW", inside the network; default: the one its name says.
        depth: blocks of each stage, or one number that multiplies them, for the networks that have stages.
        dropout: rate, for the networks that have dropout.
        l2: weight of an L2 penalty on all kernels.
        embedding: features of the bottleneck, for the face networks.
        algebra: how the network enters, uses and leaves its algebra.
        activation: of the output, for example "softmax"; default: none.

    Raises:
        ModelError: there is no such network, or it does not have what is asked for.
    """
    entry = _entry(name)
    size = _checked_size(name, entry, input_size)
    _check_options(name, entry, {"depth": depth, "dropout": dropout, "embedding": embedding})
    setting = Setting(
        _choice(Framework, framework, "framework"),
        factor,
        _choice(DataFormat, data_format or entry.data_format, "data_format"),
        l2,
        algebra or AlgebraParams(),
    )
    _check_algebra(setting)
    options = Options(entry.num_classes if num_classes is None else num_classes, depth, dropout, embedding)
    nn = Layers(setting)
    image = keras.Input(size, name="image")
    outputs = _builder(entry)(nn, nn.enter(image), options, **entry.arguments)
    return keras.Model(image, _finished(outputs, activation), name=name)


def network_from_params(params: NetworkParams) -> keras.Model:
    """The network these parameters describe."""
    depth = params.depth[0] if params.depth and len(params.depth) == 1 else params.depth
    named = _entry(params.name).data_format
    return create_network(
        params.name,
        params.input_size,
        params.num_classes,
        params.factor,
        params.framework,
        named if named == DataFormat.NCHW else params.data_format,
        depth=depth,
        dropout=params.dropout,
        l2=params.l2,
        embedding=params.embedding,
        algebra=params.algebra,
    )


def _entry(name: str) -> Entry:
    if name not in MODELS:
        raise ModelError(f"There is no network {name!r}{did_you_mean(name, MODELS)}. `scena zoo` lists them.")
    return MODELS[name]


def _builder(entry: Entry) -> Callable[..., Any]:
    module, _, function = entry.builder.partition(":")
    builder: Callable[..., Any] = getattr(importlib.import_module(f"scena.model.zoo.{module}"), function)
    return builder


def _checked_size(name: str, entry: Entry, size: Sequence[int] | None) -> tuple[int, ...]:
    size = tuple(entry.input_size if size is None else size)
    if len(size) != 3 or min(size[:2]) < entry.smallest or size[2] < 1:
        raise ModelError(
            f"{name} takes pictures of height, width and channels, at least {entry.smallest} × {entry.smallest}. Received: {size}"
        )
    return size


def _check_options(name: str, entry: Entry, given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None and option not in entry.options:
            having = [other for other, model in MODELS.items() if option in model.options]
            raise ModelError(
                f"{name} has no {option}. Received: {option}={value!r}. Those have it: {', '.join(having)}."
            )


def _check_algebra(setting: Setting) -> None:
    if setting.factor < 1:
        raise ModelError(f"factor divides the channels, so it is at least 1. Received: {setting.factor}")
    way = setting.algebra
    if setting.framework.algebra != "real" and way.leave is Leave.AFTER and way.way_out is WayOut.CONCAT:
        raise ModelError(
            "After the last layer the way out of the algebra cannot be concat: there would be more outputs than classes. "
            "Choose basic, avg_pool, max_pool or norm, or leave before the last layer."
        )


def _choice(kind: Any, value: str, name: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise ModelError(f"{name} is one of {', '.join(kind)}. Received: {value!r}") from None


def _finished(outputs: Any, activation: str | None) -> Any:
    """The outputs in single precision, also under mixed precision."""
    if isinstance(outputs, dict):
        return {
            name: keras.layers.Activation(activation or "linear", dtype="float32", name=name)(output)
            for name, output in outputs.items()
        }
    return keras.layers.Activation(activation or "linear", dtype="float32", name="logits")(outputs)
