"""Importing this module makes every layer of the package known to Keras, which loads no class from an archive that it does not know."""

from scena.model.layers import (
    componentwise,
    convolution,
    depthwise,
    doors,
    initializers,
    linear,
    normalization,
    portable,
)

__all__ = [
    "componentwise",
    "convolution",
    "depthwise",
    "doors",
    "initializers",
    "linear",
    "normalization",
    "portable",
]
