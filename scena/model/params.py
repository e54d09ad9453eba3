"""Parameters of a model. No Keras here: `--help` reads this file."""

from scena.params import Params


class ModelBaseParams(Params, abstract=True):
    """The network, its losses and metrics."""
