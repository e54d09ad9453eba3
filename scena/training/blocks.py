"""Blocks of batches as the compiled steps take them."""

from typing import Any

import numpy as np

from scena.data.batch import Batch
from scena.model.engine import Arrays

LONGEST_BLOCK = 32


def stacked(block: list[Batch], part: str) -> Arrays:
    """The inputs or targets of the batches of a block as arrays with a leading axis of batches."""
    first: dict[str, Any] = getattr(block[0], part)
    if len(block) == 1:
        return {name: array[np.newaxis] for name, array in first.items()}
    return {name: np.stack([getattr(batch, part)[name] for batch in block]) for name in first}
