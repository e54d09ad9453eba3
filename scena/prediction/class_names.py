"""Names of classes in place of their numbers, in the files of `scena predict` and the responses of a service."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scena.data.spec import ArraySpec

CLASS_OUTPUTS = ("class", "label")
"""Outputs and targets of whole numbers with these names are classes."""


def has_one_class(targets: Mapping[str, ArraySpec]) -> bool:
    """Whether samples belong to one class each: a target is a single integer or text. A vector of 0 and 1 may name several."""
    return any(spec.shape in ((), (1,)) and spec.dtype.kind not in "fc" for spec in targets.values())


def with_class_names(outputs: Any, names: Sequence[str], *, one_class: bool = True) -> Any:
    """The outputs with the name of a class instead of its number.

    If no output is a class, the name of the largest value of a vector over all classes is added as `class`, unless samples may have
    several of them (`one_class` is False).
    """
    if not names or not isinstance(outputs, dict):
        return outputs
    if any(name in outputs for name in CLASS_OUTPUTS):
        return named_classes(outputs, names)
    for value in outputs.values() if one_class else ():
        if isinstance(value, np.ndarray) and value.shape == (len(names),) and value.dtype.kind == "f":
            return {**outputs, "class": names[int(value.argmax())]}
    return outputs


def named_classes(values: Any, names: Sequence[str]) -> Any:
    """Outputs or targets with the name of a class instead of its number; nothing is added."""
    if not names or not isinstance(values, dict):
        return values
    return {
        name: names[int(value)] if name in CLASS_OUTPUTS and _is_class(value, len(names)) else value
        for name, value in values.items()
    }


def _is_class(value: Any, count: int) -> bool:
    array = np.asarray(value)
    return array.shape == () and array.dtype.kind in "iu" and 0 <= int(array) < count
