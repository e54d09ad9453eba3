"""TFRecord files without TensorFlow: reading, writing, random access, schemas, and records of images.

What needs TensorFlow is in `scena.data.tensorflow.records`; it is imported when it is used.
"""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
