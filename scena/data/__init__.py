"""Samples, specs, generators, processors and the pipelines that turn them into batches.

Names are imported when they are first used.
"""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
