"""How far the outputs of two models are apart. Needs no backend."""

from typing import NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray]


class Difference(NamedTuple):
    """How far one output of a model is from the original."""

    output: str
    value: float
    """Real outputs: the largest difference, relative to the largest value (if that exceeds 1). Whole numbers: the share that differs."""


def difference(wanted: np.ndarray, received: np.ndarray) -> float:
    """How far one output is from what it should be; infinite if it has another shape."""
    if wanted.shape != received.shape:
        return float("inf")
    if not np.issubdtype(wanted.dtype, np.floating):
        return float(np.mean(wanted != received)) if wanted.size else 0.0
    wanted, received = wanted.astype("float64"), received.astype("float64")
    if not wanted.size:
        return 0.0
    if not np.array_equal(np.isfinite(wanted), np.isfinite(received)):
        return float("inf")
    finite = np.isfinite(wanted)
    scale = max(1.0, float(np.max(np.abs(wanted[finite]), initial=0.0)))
    return float(np.max(np.abs(wanted[finite] - received[finite]), initial=0.0)) / scale
