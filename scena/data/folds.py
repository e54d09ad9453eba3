"""Folds of a cross-validation: which samples of a source are tested in which fold. numpy only.

A fold depends on the seed, the index of the sample and, if asked for, on strata and groups, and on nothing else.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from scena.errors import DataError

Folds = np.ndarray[Any, Any]
"""The number of the fold that tests each sample."""


def assign_folds(
    count: int,
    folds: int,
    seed: Sequence[int],
    strata: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> Folds:
    """The fold of each of `count` samples, from 0.

    Args:
        count: how many samples there are.
        folds: how many folds.
        seed: what draws the folds.
        strata: the class of each sample: each fold gets its share of each class.
        groups: what must stay together, for example the person or the site of each sample.

    Raises:
        DataError: there are too few samples, members of a class or groups for so many folds.
    """
    if count < folds:
        raise DataError(f"{folds} folds need at least as many samples; there are {count}.")
    rng = np.random.default_rng(seed)
    classes, names = _numbered(strata, count)
    if strata is not None:
        sizes = np.bincount(classes)
        rarest = int(sizes.argmin())
        if sizes[rarest] < folds:
            size = f"{sizes[rarest]} sample{'s' if sizes[rarest] > 1 else ''}"
            remedy = f"Take at most {sizes[rarest]} folds, merge" if sizes[rarest] > 1 else "Merge"
            if sizes[rarest] == 1 and len(names) > count / 2:
                remedy = "Numbers to predict are no classes: stratify by another value, merge"
            raise DataError(
                f"The class {names[rarest]!r} has {size}, fewer than the {folds} folds: some would be tested without it. "
                f"{remedy} classes, or do not stratify."
            )
    if groups is None:
        return _dealt(classes, folds, rng)
    members, _ = _numbered(groups, count)
    if members.max() + 1 < folds:
        raise DataError(f"{folds} folds need at least as many groups; there are {members.max() + 1}.")
    return _grouped(classes, members, folds, rng)


def _numbered(values: Sequence[Hashable] | None, count: int) -> tuple[np.ndarray[Any, Any], list[Hashable]]:
    if values is None:
        return np.zeros(count, int), [None]
    names = sorted(set(values), key=lambda value: (type(value).__name__, value))
    number = {name: index for index, name in enumerate(names)}
    return np.array([number[value] for value in values]), names


def _dealt(classes: np.ndarray[Any, Any], folds: int, rng: np.random.Generator) -> Folds:
    """Deals shuffled samples class by class like cards, so that numbers differ by at most one in each class and in all."""
    order = rng.permutation(len(classes))
    order = order[np.argsort(classes[order], kind="stable")]
    found = np.empty(len(classes), int)
    found[order] = np.arange(len(classes)) % folds
    return found


def _grouped(
    classes: np.ndarray[Any, Any], members: np.ndarray[Any, Any], folds: int, rng: np.random.Generator
) -> Folds:
    """Gives whole groups, the largest first, to the fold that they balance best: in classes, then in size."""
    counts = np.zeros((members.max() + 1, classes.max() + 1))
    np.add.at(counts, (members, classes), 1)
    order = rng.permutation(len(counts))
    # groups that are hard to place come first: those with many samples of few classes
    order = order[np.argsort(-counts[order].std(axis=1) - counts[order].sum(axis=1), kind="stable")]
    totals = counts.sum(axis=0)
    filled = np.zeros((folds, counts.shape[1]))
    fold_of = np.empty(len(counts), int)
    for place, group in enumerate(order):
        costs = []
        for fold in range(folds):
            filled[fold] += counts[group]
            costs.append((float((filled / totals).std(axis=0).mean()), float(filled[fold].sum())))
            filled[fold] -= counts[group]
        empty = [fold for fold in range(folds) if not filled[fold].any()]
        # the last groups must fill folds that are still empty
        allowed = empty if len(empty) >= len(order) - place else range(folds)
        fold_of[group] = min(allowed, key=lambda fold: costs[fold])
        filled[fold_of[group]] += counts[group]
    return fold_of[members]
