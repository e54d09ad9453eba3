"""Counts floating point operations of a network: two for each multiply-add of its convolutions and dense layers.

Normalisation, activations and pooling are not counted, as is usual; layers of an algebra count as the real operation they run.
"""

import math
from typing import Any

from keras import Model as KerasModel
from keras import layers

from scena.errors import ModelError
from scena.model.layers.algebra_conversion import IntoAlgebra
from scena.model.layers.convolution import (
    AlgebraConv2D,
    AlgebraConv2DTranspose,
    AlgebraDepthwiseConv2D,
    AlgebraSeparableConv2D,
)
from scena.model.layers.linear import AlgebraDense, AlgebraLinear
from scena.model.layers.portable import channels_of


def count_flops(model: KerasModel) -> int:
    """The floating point operations of one sample in a functional or sequential model, each layer as often as it is used.

    Raises:
        ModelError: the size of an image is not known.
    """
    return 2 * sum(
        _multiply_adds(layer, _shape(node.input_tensors[0]), _shape(node.outputs[0]))
        for layer in model.layers
        for node in layer._inbound_nodes
        if node.input_tensors
    )


def _multiply_adds(layer: Any, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> int:
    """The multiply-adds of a built layer for one sample, given the shapes of its input and output."""
    if isinstance(layer, KerasModel):
        return count_flops(layer) // 2
    if isinstance(layer, IntoAlgebra):
        return 2 * 9 * len(layer.nets) * math.prod(inputs[1:]) * channels_of(inputs, layer.data_format)
    if isinstance(layer, AlgebraSeparableConv2D):
        middle: Any = layer.spread.compute_output_shape(inputs)
        return _multiply_adds(layer.spread, inputs, middle) + _multiply_adds(layer.mix, middle, outputs)
    # each component of the input meets all of the kernel
    components = layer.algebra.components if isinstance(layer, AlgebraLinear) else 1
    if isinstance(layer, layers.Dense | AlgebraDense):
        return math.prod(inputs[1:]) * layer.units * components
    if isinstance(layer, layers.SeparableConv2D):
        positions = _positions(outputs, layer.data_format)
        return positions * (math.prod(layer.depthwise_kernel.shape) + math.prod(layer.pointwise_kernel.shape))
    if isinstance(layer, layers.Conv2DTranspose | AlgebraConv2DTranspose):
        return _positions(inputs, layer.data_format) * math.prod(layer.kernel.shape) * components
    if isinstance(layer, layers.Conv2D | layers.DepthwiseConv2D | AlgebraConv2D | AlgebraDepthwiseConv2D):
        return _positions(outputs, layer.data_format) * math.prod(layer.kernel.shape) * components
    return 0


def _positions(shape: tuple[int, ...], data_format: str) -> int:
    return math.prod(shape[2:] if data_format == "channels_first" else shape[1:-1])


def _shape(tensor: Any) -> tuple[int, ...]:
    batch, *sizes = tensor.shape
    if None in sizes:
        raise ModelError(
            f"Operations can be counted for a known size only. Received a tensor of the shape {tensor.shape}."
        )
    return (batch, *sizes)
