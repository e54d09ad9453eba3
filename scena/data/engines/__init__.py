"""Who runs the stages of a pipeline: this process, or worker processes. Engines import stages, never the reverse."""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
