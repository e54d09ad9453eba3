"""Layers over geometric algebras (complex numbers, quaternions, Cl(3,0)), each usable on its own in any Keras model.

The components of an element are stacked along the channels, so activations, pooling, adding and padding are Keras' own layers.
"""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
