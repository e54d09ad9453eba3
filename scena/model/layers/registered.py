"""Registers all layers of the package with Keras, which loads only registered classes from an archive."""

from scena.model.layers import (
    algebra_conversion,
    componentwise,
    convolution,
    depthwise,
    linear,
    normalization,
    portable,
)

__all__ = [
    "algebra_conversion",
    "componentwise",
    "convolution",
    "depthwise",
    "linear",
    "normalization",
    "portable",
]
