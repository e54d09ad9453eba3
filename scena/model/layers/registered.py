"""Registers all layers of the package with Keras, which loads only registered classes from an archive."""

from scena.model.layers import *  # noqa: F403  (importing a layer registers it)
