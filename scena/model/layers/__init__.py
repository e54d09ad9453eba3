"""Layers over geometric algebras (complex numbers, quaternions, Cl(3,0)), each usable on its own in any Keras model.

The components of an element are stacked along the channels, so activations, pooling, adding and padding are Keras' own layers.
"""

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "algebra": ["ALGEBRAS", "Algebra", "get_algebra", "multiply_blades"],
    "linear": ["AlgebraDense"],
    "convolution": ["AlgebraConv2D", "AlgebraConv2DTranspose"],
    "depthwise": ["AlgebraDepthwiseConv2D", "AlgebraSeparableConv2D"],
    "componentwise": ["AlgebraConcatenate", "AlgebraDropout", "AlgebraFlatten", "AlgebraPadChannels"],
    "normalization": ["WhiteningBatchNormalization"],
    "initializers": ["AlgebraInitializer"],
    "doors": ["IntoAlgebra", "OutOfAlgebra"],
    "portable": ["PortableConv2D", "Transpose"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)


if TYPE_CHECKING:
    from scena.model.layers.algebra import ALGEBRAS as ALGEBRAS
    from scena.model.layers.algebra import Algebra as Algebra
    from scena.model.layers.algebra import get_algebra as get_algebra
    from scena.model.layers.algebra import multiply_blades as multiply_blades
    from scena.model.layers.algebra_conversion import IntoAlgebra as IntoAlgebra
    from scena.model.layers.algebra_conversion import OutOfAlgebra as OutOfAlgebra
    from scena.model.layers.componentwise import AlgebraConcatenate as AlgebraConcatenate
    from scena.model.layers.componentwise import AlgebraDropout as AlgebraDropout
    from scena.model.layers.componentwise import AlgebraFlatten as AlgebraFlatten
    from scena.model.layers.componentwise import AlgebraPadChannels as AlgebraPadChannels
    from scena.model.layers.convolution import AlgebraConv2D as AlgebraConv2D
    from scena.model.layers.convolution import AlgebraConv2DTranspose as AlgebraConv2DTranspose
    from scena.model.layers.depthwise import AlgebraDepthwiseConv2D as AlgebraDepthwiseConv2D
    from scena.model.layers.depthwise import AlgebraSeparableConv2D as AlgebraSeparableConv2D
    from scena.model.layers.initializers import AlgebraInitializer as AlgebraInitializer
    from scena.model.layers.linear import AlgebraDense as AlgebraDense
    from scena.model.layers.normalization import WhiteningBatchNormalization as WhiteningBatchNormalization
    from scena.model.layers.portable import PortableConv2D as PortableConv2D
    from scena.model.layers.portable import Transpose as Transpose
