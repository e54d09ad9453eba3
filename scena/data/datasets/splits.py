"""Parts of a data set: `train`, `train[:80%]`, `train[1000:]+validation`, and what is taken if nothing is said."""

import logging
import re
from typing import Any

import numpy as np

from scena.data.errors import DataError
from scena.data.modes import PipelineMode

logger = logging.getLogger("scena.data")

TRAIN_NAMES = ("train", "training", "all")
VALIDATION_NAMES = ("validation", "val", "valid", "dev")
_PART = re.compile(r"^(?P<name>[^\[\]+]+)(?:\[(?P<start>-?\d+%?)?:(?P<stop>-?\d+%?)?\])?$")
Part = tuple[str, np.ndarray[Any, Any]]
"""The name of a split, and the places of the chosen samples in it."""


def choose_parts(split: str | None, mode: PipelineMode, counts: dict[str, int], seed: int, name: str) -> list[Part]:
    """The samples that a pipeline reads.

    Args:
        split: as above; None: the training split to train on, the validation split to validate on. A data set without a
            validation split is validated on a seeded tenth of its training split, which is then not trained on.
        mode: decides if nothing is said.
        counts: the number of samples in each split of the data set.
        seed: of that tenth.
        name: of the data set, for messages.
    """
    if split is not None:
        return [_part(text.strip(), counts, name) for text in split.split("+")]
    train = next((known for known in TRAIN_NAMES if known in counts), None)
    validation = next((known for known in VALIDATION_NAMES if known in counts), None)
    if mode is not PipelineMode.TRAINING and validation is not None:
        return [(validation, np.arange(counts[validation]))]
    if train is None:
        raise DataError(f"{name} has the splits {', '.join(counts)}, none of which is for training: name one (split).")
    if validation is not None:
        return [(train, np.arange(counts[train]))]
    count = counts[train]
    order = np.random.default_rng([seed, count]).permutation(count)
    tenth = max(1, count // 10) if count > 1 else 0
    if mode is PipelineMode.TRAINING:
        return [(train, np.sort(order[tenth:]))]
    logger.info(
        "%s has no validation split: %d samples of %s (a tenth, seed %d) are kept for it.", name, tenth, train, seed
    )
    return [(train, np.sort(order[:tenth]))]


def _part(text: str, counts: dict[str, int], name: str) -> Part:
    found = _PART.match(text)
    if found is None:
        raise DataError(f"A split is written as train, train[:80%] or train[100:200]+test. Received: {text!r}.")
    split = found["name"].strip()
    if split not in counts:
        raise DataError(f"{name} has no split {split!r}; it has {', '.join(counts)}.")
    count = counts[split]
    start, stop = _bound(found["start"], count, 0), _bound(found["stop"], count, count)
    return split, np.arange(start, max(start, stop))


def _bound(text: str | None, count: int, default: int) -> int:
    if text is None:
        return default
    value = round(int(text[:-1]) * count / 100) if text.endswith("%") else int(text)
    return min(max(value + count if value < 0 else value, 0), count)
