"""Mistakes of sources and processors that would change data without a word.

Processors get read-only arrays of the source, since a change would be there again in the next epoch; a source or processor that
fills one array again and again is noticed with its first samples.
"""

from typing import Any

import numpy as np

from scena.data.errors import DataError
from scena.data.sample import Sample

WATCHED = 8
"""So many samples are watched; a mistake of this kind concerns all of them."""


def read_only(sample: Sample) -> Sample:
    """The sample for processors: dicts of its own, and arrays that cannot be changed in place."""
    copy = sample._copy()
    copy.inputs = _read_only(sample.inputs)
    copy.targets = _read_only(sample.targets)
    if type(sample.meta) is dict:
        copy.meta = sample.meta.copy()
    return copy


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.setflags(write=False)
    elif type(value) is dict:
        value = value.copy()
        for name, item in value.items():
            if isinstance(item, np.ndarray):
                value[name] = item = item.view()
                item.setflags(write=False)
    return value


class ReuseWatch:
    """Notices that making a sample changes the one before it.

    Args:
        maker: name of the source or processors, for the error.
    """

    def __init__(self, maker: str) -> None:
        self._maker = maker
        self._left = WATCHED
        self._last: tuple[Sample, dict[str, bytes]] | None = None

    def see(self, sample: Sample) -> "ReuseWatch | None":
        """Looks at the next sample; returns itself, or None when it has seen enough."""
        if self._last is not None:
            before, content = self._last
            for name, array in _arrays(before).items():
                if array.tobytes() != content[name]:
                    raise DataError(
                        f"{self._maker} uses the array of {name} again: that of {before.identity()} changed when "
                        f"{sample.identity()} was made, so samples of a batch would be mixed up. Return a new array for each sample."
                    )
        self._left -= 1
        self._last = (sample, {name: array.tobytes() for name, array in _arrays(sample).items()})
        return self if self._left else None


def _arrays(sample: Sample) -> dict[str, np.ndarray]:
    return {
        f"{kind}[{name!r}]": value
        for kind, values in (("inputs", sample.inputs), ("targets", sample.targets))
        if isinstance(values, dict)
        for name, value in values.items()
        if isinstance(value, np.ndarray) and value.dtype != object
    }
