"""Learning what is alike: margin heads, center loss, balanced losses, and how well embeddings verify.

Each is usable on its own in any Keras model; `verification` needs numpy only.
"""

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "margins": ["ArcFace", "CombinedMargin", "CosFace", "MarginHead", "SphereFace"],
    "heads": ["Softmax", "create_center_loss", "create_head"],
    "center_loss": ["CenterLoss"],
    "pixelwise": ["PixelwiseBinaryCrossentropy", "balanced_weights"],
    "embedding_accuracy": ["EmbeddingAccuracy", "nearest_is_same", "normalised"],
    "verification": ["ErrorRates", "error_rates", "pair_scores"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)


if TYPE_CHECKING:
    from scena.model.metric_learning.center_loss import CenterLoss as CenterLoss
    from scena.model.metric_learning.embedding_accuracy import EmbeddingAccuracy as EmbeddingAccuracy
    from scena.model.metric_learning.embedding_accuracy import nearest_is_same as nearest_is_same
    from scena.model.metric_learning.embedding_accuracy import normalised as normalised
    from scena.model.metric_learning.heads import Softmax as Softmax
    from scena.model.metric_learning.heads import create_center_loss as create_center_loss
    from scena.model.metric_learning.heads import create_head as create_head
    from scena.model.metric_learning.margins import ArcFace as ArcFace
    from scena.model.metric_learning.margins import CombinedMargin as CombinedMargin
    from scena.model.metric_learning.margins import CosFace as CosFace
    from scena.model.metric_learning.margins import MarginHead as MarginHead
    from scena.model.metric_learning.margins import SphereFace as SphereFace
    from scena.model.metric_learning.pixelwise import PixelwiseBinaryCrossentropy as PixelwiseBinaryCrossentropy
    from scena.model.metric_learning.pixelwise import balanced_weights as balanced_weights
    from scena.model.metric_learning.verification import ErrorRates as ErrorRates
    from scena.model.metric_learning.verification import error_rates as error_rates
    from scena.model.metric_learning.verification import pair_scores as pair_scores
