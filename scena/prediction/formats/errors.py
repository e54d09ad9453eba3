"""What can go wrong when a model is converted. Apart from the converters, because it needs no TensorFlow."""

from scena.errors import ScenaError


class ConversionError(ScenaError, RuntimeError):
    """A model cannot be converted, or its conversion gives other answers."""
