"""Folds, with scikit-learn as the oracle."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from scena.data.folds import assign_folds
from scena.errors import DataError

RNG = np.random.default_rng(4)


def sizes(folds: Any, among: Any = slice(None)) -> list[int]:
    return sorted(Counter(np.asarray(folds)[among].tolist()).values())


def of_sklearn(splitter: Any, count: int, *more: Any) -> Any:
    """The fold of each sample as scikit-learn assigns it."""
    found = np.full(count, -1)
    for number, (_, test) in enumerate(splitter.split(np.zeros(count), *more)):
        assert (found[test] == -1).all()
        found[test] = number
    return found


@pytest.mark.parametrize(("count", "folds"), [(5, 5), (10, 3), (103, 5), (64, 2), (97, 10)])
def test_each_sample_is_tested_once_and_folds_have_the_sizes_of_kfold(count: int, folds: int) -> None:
    found = assign_folds(count, folds, [0])
    assert len(found) == count and set(found) == set(range(folds))
    assert sizes(found) == sizes(of_sklearn(KFold(folds, shuffle=True, random_state=1), count))


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_strata_are_shared_out_as_by_stratified_kfold(folds: int) -> None:
    labels = RNG.choice(4, size=211, p=[0.6, 0.25, 0.1, 0.05])
    found = assign_folds(211, folds, [3], strata=labels.tolist())
    expected = of_sklearn(StratifiedKFold(folds, shuffle=True, random_state=0), 211, labels)
    assert sizes(found) == sizes(expected)
    for label in range(4):
        among = labels == label
        assert sizes(found, among) == sizes(expected, among)
        assert max(sizes(found, among)) - min(sizes(found, among)) <= 1


@pytest.mark.parametrize("folds", [2, 4])
def test_groups_are_never_split_and_balanced_as_by_group_kfold(folds: int) -> None:
    groups = RNG.choice(15, size=300)
    found = assign_folds(300, folds, [0], groups=[f"site {group}" for group in groups])
    assert all(len(set(found[groups == group])) == 1 for group in range(15))
    expected = sizes(of_sklearn(GroupKFold(folds), 300, None, groups))
    assert max(sizes(found)) - min(sizes(found)) <= max(expected) - min(expected) + 3
    assert len(sizes(found)) == folds


def test_groups_and_strata_together_are_balanced_as_by_stratified_group_kfold() -> None:
    groups = RNG.choice(30, size=400)
    labels = (RNG.random(400) < np.where(groups % 3 == 0, 0.6, 0.2)).astype(int)
    found = assign_folds(400, 5, [0], strata=labels.tolist(), groups=groups.tolist())
    assert all(len(set(found[groups == group])) == 1 for group in range(30))
    splitter = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    expected = of_sklearn(splitter, 400, labels, groups)

    def spread(folds: Any) -> float:
        return float(np.std([labels[folds == fold].mean() for fold in range(5)]))

    assert spread(found) <= spread(expected) * 1.5 and len(sizes(found)) == 5


def test_random_cases_are_as_balanced_as_those_of_sklearn() -> None:
    """Sizes equal to KFold, StratifiedKFold and GroupKFold; strata of groups as even as by StratifiedGroupKFold, on average more so."""
    rng = np.random.default_rng(8)
    uneven: list[float] = []
    for case in range(40):
        folds = int(rng.integers(2, 9))
        count = int(rng.integers(folds, 160))
        plain = KFold(folds, shuffle=True, random_state=case)
        assert sizes(assign_folds(count, folds, [case])) == sizes(of_sklearn(plain, count))
        labels = rng.choice(3, size=count, p=rng.dirichlet(np.ones(3)))
        many = int(rng.integers(folds, 50))
        groups = (
            rng.integers(0, many, size=count) if case % 2 else rng.zipf(1.6, size=count) % many
        )  # even, or a few large ones
        rarest, there = min(Counter(labels.tolist()).values()), len(set(groups.tolist()))
        if rarest < folds:
            with pytest.raises(DataError, match="fewer than"):
                assign_folds(count, folds, [case], labels.tolist())
        else:
            found = assign_folds(count, folds, [case], labels.tolist())
            expected = of_sklearn(StratifiedKFold(folds, shuffle=True, random_state=case), count, labels)
            for among in (slice(None), *(labels == label for label in set(labels))):
                assert sizes(found, among) == sizes(expected, among)
        if there < folds:
            with pytest.raises(DataError, match="at least as many groups"):
                assign_folds(count, folds, [case], groups=groups.tolist())
            continue
        found = assign_folds(count, folds, [case], groups=groups.tolist())
        expected = of_sklearn(GroupKFold(folds), count, None, groups)
        assert len(sizes(found)) == folds and np.ptp(sizes(found)) == np.ptp(sizes(expected))
        if rarest < folds:
            continue
        found = assign_folds(count, folds, [case], labels.tolist(), groups.tolist())
        assert all(len(set(found[groups == group])) == 1 for group in set(groups.tolist()))
        assert set(found.tolist()) == set(range(folds))  # scikit-learn's may be empty
        expected = of_sklearn(StratifiedGroupKFold(folds, shuffle=True, random_state=case), count, labels, groups)
        shares = [
            np.mean(
                [
                    np.std(np.bincount(one[labels == label], minlength=folds)) / (labels == label).sum()
                    for label in set(labels)
                ]
            )
            for one in (found, expected)
        ]
        uneven.append(shares[0] - shares[1])
    assert len(uneven) > 20 and max(uneven) < 0.1 and np.mean(uneven) <= 0


def test_folds_depend_on_seed_and_values_only() -> None:
    labels = RNG.choice(3, size=90).tolist()
    named = [f"class {label}" for label in labels]
    assert np.array_equal(assign_folds(90, 3, [1], labels), assign_folds(90, 3, [1], named))
    assert np.array_equal(assign_folds(90, 3, [1, 0]), assign_folds(90, 3, [1, 0]))
    assert not np.array_equal(assign_folds(90, 3, [1, 0]), assign_folds(90, 3, [1, 1]))


def test_as_many_groups_as_folds_fill_each_fold() -> None:
    groups = ["a"] * 50 + ["b"] * 2 + ["c"] * 2 + ["d"]
    assert sizes(assign_folds(55, 4, [0], groups=groups)) == [1, 2, 2, 50]
    strata = [0, 1, 0, 1, 0, 1, 1, 1, 0]  # by its classes the last group would join another one
    assert sizes(assign_folds(9, 3, [0], strata, groups=list("abcbacccc"))) == [2, 2, 5]


def test_too_few_samples_members_or_groups_are_refused() -> None:
    with pytest.raises(DataError, match="3 folds need at least as many samples; there are 2"):
        assign_folds(2, 3, [0])
    with pytest.raises(DataError, match=r"The class 'rare' has 2 samples, fewer than the 3 folds.* at most 2 folds"):
        assign_folds(9, 3, [0], strata=["often"] * 7 + ["rare"] * 2)
    with pytest.raises(DataError, match=r"'rare' has 1 sample, .* without it. Merge classes, or do not stratify."):
        assign_folds(9, 3, [0], strata=["often"] * 8 + ["rare"])
    with pytest.raises(DataError, match=r"Numbers to predict are no classes: stratify by another value"):
        assign_folds(9, 3, [0], strata=[number / 7 for number in range(9)])
    with pytest.raises(DataError, match="3 folds need at least as many groups; there are 2"):
        assign_folds(9, 3, [0], groups=[1] * 5 + [2] * 4)
