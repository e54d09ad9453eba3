"""Building a network of the zoo by name."""

from collections.abc import Sequence
from typing import Any

import keras

from scena.model.zoo.catalogue import MODELS
from scena.model.zoo.keras_layers import KerasLayers
from scena.model.zoo.namespace import Depth
from scena.model.zoo.params import AlgebraParams, DataFormat, Framework, NetworkParams
from scena.model.zoo.request import request


def create_network(
    name: str,
    input_size: Sequence[int] | None = None,
    num_classes: int | None = None,
    factor: float = 1,
    framework: str = Framework.TENSORFLOW,
    data_format: str | None = None,
    *,
    depth: Depth | None = None,
    dropout: float | None = None,
    l2: float = 0.0,
    embedding: int | None = None,
    variant: str | None = None,
    algebra: AlgebraParams | None = None,
    activation: str | None = None,
) -> keras.Model:
    """Builds a network with random weights.

    Its input is a batch of NHWC images, normalised by the caller; its output the logits, in single precision. Two networks differ: those
    for faces give an embedding by default, and DeepPixBiS a dict of the logits and their map.

    Args:
        name: one of `scena zoo`.
        input_size: height, width, channels; default: the size of the network's paper.
        num_classes: units of the classifier; 0 removes it, so that the output is the features; default: the network's own.
        factor: divides the number of channels of every layer; below 1 it widens them.
        framework: "tensorflow", "upstride_real", "upstride_type1", "upstride_type2" or "upstride_type3".
        data_format: "NHWC" or "NCHW", inside the network; default: as its name says.
        depth: blocks of each stage, or one number that multiplies them, for the networks that have stages.
        dropout: rate, for the networks that have dropout.
        l2: weight of an L2 penalty on all kernels.
        embedding: features of the bottleneck, for the face networks.
        variant: another published form of AlexNet or a CIFAR ResNet, see `docs/zoo.md`.
        algebra: how the network enters, uses and leaves its algebra.
        activation: of the output, for example "softmax"; default: none.

    Raises:
        ModelError: there is no such network, or it does not support an option.
    """
    asked = request(
        name,
        input_size,
        num_classes,
        factor,
        framework,
        data_format,
        depth=depth,
        dropout=dropout,
        l2=l2,
        embedding=embedding,
        variant=variant,
        algebra=algebra,
    )
    image = keras.Input(asked.input_size, name="image")
    with keras.name_scope(name):  # paths such as ResNet50/classifier, to freeze layers by
        outputs = _finished(asked.build(KerasLayers(asked.setting), image), activation)
    return keras.Model(image, outputs, name=name)


def network_from_params(params: NetworkParams) -> keras.Model:
    """The network these parameters describe."""
    depth = params.depth[0] if params.depth and len(params.depth) == 1 else params.depth
    named = MODELS[params.name].data_format
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
        variant=params.variant,
        algebra=params.algebra,
    )


def _finished(outputs: Any, activation: str | None) -> Any:
    """The outputs in single precision, also under mixed precision."""
    if isinstance(outputs, dict):
        return {
            name: keras.layers.Activation(activation or "linear", dtype="float32", name=name)(output)
            for name, output in outputs.items()
        }
    return keras.layers.Activation(activation or "linear", dtype="float32", name="logits")(outputs)
