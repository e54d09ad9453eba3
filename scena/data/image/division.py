"""Dividing a data set into splits with the same share of each class, by seed."""

from collections import defaultdict
from typing import Any

import numpy as np

from scena.data.image.listing import ImageEntry


def balanced_splits(
    entries: list[ImageEntry], names: list[str], fractions: list[float], seed: int
) -> dict[str, list[ImageEntry]]:
    """Each split with its share of each class (largest remainders, so that totals are right too), sorted by class.

    Entries of one class are drawn in an order that depends on the seed and their names only.
    """
    by_class: dict[int, list[ImageEntry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: (entry.label, entry.name)):
        by_class[entry.label].append(entry)
    splits: dict[str, list[ImageEntry]] = {name: [] for name in names}
    owed = np.zeros(len(names))
    for label, members in by_class.items():
        order = np.random.default_rng([seed, label]).permutation(len(members))
        start = 0
        for name, size in zip(names, _shares(len(members), fractions, owed), strict=True):
            splits[name] += [members[number] for number in order[start : start + size]]
            start += size
    return splits


def _shares(count: int, fractions: list[float], owed: Any) -> list[int]:
    """How many of `count` each split gets: its share rounded down or up, up where most is owed.

    Args:
        count: what is divided.
        fractions: the shares, which sum to 1.
        owed: what each split has got too little so far, or too much; it is updated.
    """
    exact = count * np.asarray(fractions)
    shares = np.floor(exact + 1e-6)  # 0.7 * 10 is a little less than 7 in floating point
    remainders = np.maximum(exact - shares, 0)
    missing = max(0, count - int(shares.sum()))
    # rounding keeps three splits of 0.1 that are owed the same apart by their order
    wanting = np.where(remainders > 1e-6, np.round(remainders + owed, 6), -np.inf)
    shares[np.argsort(-wanting, kind="stable")[:missing]] += 1
    owed += exact - shares
    return [int(share) for share in shares]


def spread_over_files(entries: list[ImageEntry], files: int, seed: int) -> list[list[ImageEntry]]:
    """Entries that are sorted by class, dealt to `files` files in turn, and shuffled within each."""
    dealt = [entries[number::files] for number in range(files)]
    return [
        [part[place] for place in np.random.default_rng([seed, files, number]).permutation(len(part))]
        for number, part in enumerate(dealt)
    ]
