"""Metric learning: margin heads, center loss, balanced losses, and verification by embeddings.

Each is usable on its own in any Keras model; `verification` needs numpy only.
"""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
