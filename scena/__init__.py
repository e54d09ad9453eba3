"""Scena: a research framework for Keras 3. Names are imported when they are first used, so that nothing heavy loads early."""

from scena.backends.quiet import silence_tensorflow
from scena.lazy import attach

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attach(__name__, __file__)
silence_tensorflow()
