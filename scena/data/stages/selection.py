"""Which samples stand for a whole data set: what a limit takes, and what an automatic split keeps for validation."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def representative_order(count: int, rng: np.random.Generator, strata: Sequence[Any] | None = None) -> Any:
    """All places from 0 to `count` - 1 in a random order whose every beginning stands for the whole.

    Args:
        count: how many there are.
        rng: draws the order.
        strata: the class of each place; any beginning of the order then holds the same share of each class.
    """
    order = rng.permutation(count)
    if strata is None:
        return order
    by_class = np.argsort(np.asarray(strata)[order], kind="stable")
    _, starts, sizes = np.unique(np.asarray(strata)[order][by_class], return_index=True, return_counts=True)
    ranks = np.arange(count) - np.repeat(starts, sizes)
    # member r of n of a class comes at (r + u) / n of the way: a random u decides which class is the first to have one more
    way = np.empty(count)
    way[by_class] = (ranks + np.repeat(rng.random(len(sizes)), sizes)) / np.repeat(sizes, sizes)
    return order[np.argsort(way, kind="stable")]
