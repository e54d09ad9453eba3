"""Images: finding and reading them, preparing them for records, and augmentations that run in Python and in tf.data."""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
