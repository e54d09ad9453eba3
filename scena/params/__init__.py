"""What can be set: declaring parameters, reading them from files and from the command line, and storing them.

The names below are loaded when they are first used, so that a params module costs no more than `Params` and `param`.
"""

from scena.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
