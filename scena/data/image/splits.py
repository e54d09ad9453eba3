"""Dividing a data set into splits with the same share of each class, by seed."""

from collections import defaultdict

import numpy as np

from scena.data.image.found import ImageEntry


def balanced_splits(
    entries: list[ImageEntry], names: list[str], fractions: list[float], seed: int
) -> dict[str, list[ImageEntry]]:
    """Each split with its share of each class (rounded down; the rest goes to the last split), sorted by class.

    Entries of one class are drawn in an order that depends on the seed and their names only.
    """
    by_class: dict[int, list[ImageEntry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: (entry.label, entry.name)):
        by_class[entry.label].append(entry)
    splits: dict[str, list[ImageEntry]] = {name: [] for name in names}
    for label, members in by_class.items():
        order = np.random.default_rng([seed, label]).permutation(len(members))
        start = 0
        for place, (name, fraction) in enumerate(zip(names, fractions, strict=True)):
            last = place == len(names) - 1
            # 0.7 * 10 is a little less than 7 in floating point
            stop = len(members) if last else start + int(len(members) * fraction + 1e-6)
            splits[name] += [members[number] for number in order[start:stop]]
            start = stop
    return splits


def spread_over_files(entries: list[ImageEntry], files: int, seed: int) -> list[list[ImageEntry]]:
    """Entries that are sorted by class, dealt to `files` files in turn, and shuffled within each."""
    dealt = [entries[number::files] for number in range(files)]
    return [
        [part[place] for place in np.random.default_rng([seed, files, number]).permutation(len(part))]
        for number, part in enumerate(dealt)
    ]
