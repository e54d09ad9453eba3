"""Importing this module makes every layer of the package known to Keras, which loads no class from an archive that it does not know."""

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
