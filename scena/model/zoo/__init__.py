"""Networks for images by name, each at any factor and in any algebra. `create_network` builds one; `params` lists them without Keras."""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
