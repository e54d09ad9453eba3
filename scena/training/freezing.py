"""Leaving layers out of the training by their path."""

import logging
import re
from typing import Any

import keras

from scena.training.errors import TrainingError

logger = logging.getLogger(__name__)


def freeze_layers(root: keras.layers.Layer, scope: str) -> list[str]:
    """Makes the layers whose whole path matches, and all layers inside them, not trainable; returns the matched paths.

    Args:
        root: the layer that holds all others.
        scope: a regular expression; `.*conv.*` matches every layer with `conv` in its path.
    """
    # a layer without weights has no path
    layers: list[Any] = [layer for layer in root._flatten_layers() if layer is not root and layer.path]
    matched = [layer for layer in layers if re.fullmatch(scope, layer.path)]
    if not matched:
        there = "\n  ".join(sorted({layer.path for layer in layers}))
        raise TrainingError(f"--trainer.no_train_scope {scope!r} matches no layer. The layers are:\n  {there}")
    for layer in matched:
        layer.trainable = False
    if not root.trainable_variables:
        raise TrainingError(f"--trainer.no_train_scope {scope!r} leaves nothing to train.")
    paths = [layer.path for layer in matched]
    logger.info("Not trained: %s", ", ".join(paths))
    return paths
