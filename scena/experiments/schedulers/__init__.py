"""What runs processes: slots on this machine, or a Ray cluster."""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
