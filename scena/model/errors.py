"""The error of a model whose parts do not fit together."""

from scena.errors import ScenaError


class ModelError(ScenaError, RuntimeError):
    """A graph, loss or metric is not what Scena needs; the message says which one and what to return instead."""
