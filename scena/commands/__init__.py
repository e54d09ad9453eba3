"""The subcommands of the `scena` program, one class in one file each; and the base classes of those, also for other packages."""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
