"""From samples to the arrays of a batch: check against the specs, pad, stack."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scena.data.params import PipelineMode
from scena.data.sample import Sample
from scena.data.spec import ArraySpec, describe
from scena.errors import DataError

Arrays = dict[str, np.ndarray[Any, Any]]
Layout = list[tuple[tuple[int, ...], np.dtype[Any]]]
Allocate = Callable[[Layout], list[np.ndarray[Any, Any]]]
_NUMBERS = "biuf"


def allocate_memory(layout: Layout) -> list[np.ndarray[Any, Any]]:
    return [np.empty(shape, dtype) for shape, dtype in layout]


class Collator:
    """Stacks samples into a batch by the specs of inputs and targets. Entries without a spec are dropped."""

    def __init__(self, inputs: dict[str, ArraySpec], targets: dict[str, ArraySpec], padding: dict[str, Any],
                 mode: PipelineMode, whole_batches: bool = False) -> None:  # fmt: skip
        self.inputs = inputs
        self.targets = targets
        self.padding = padding
        self.mode = mode
        self.whole_batches = whole_batches
        self._parts: list[tuple[str, str, ArraySpec, Any]] = []
        for part, specs, used in (("inputs", inputs, mode.has_inputs), ("targets", targets, mode.has_targets)):
            for key, spec in specs.items() if used else ():
                spec = ArraySpec((None, *spec.shape), spec.dtype) if whole_batches else spec
                self._parts.append((part, key, spec, padding.get(key, 0)))

    @property
    def pads(self) -> bool:
        """Whether a sample looks different in batches of other samples."""
        return any(spec.variable or spec.dtype.kind in "US" for _, _, spec, _ in self._parts)

    def keys(self) -> list[tuple[str, str]]:
        """(inputs | targets, name) of each array, in the order of `collate`."""
        return [(part, key) for part, key, _, _ in self._parts]

    def collate(self, samples: Sequence[Sample], allocate: Allocate = allocate_memory) -> list[np.ndarray[Any, Any]]:
        """The arrays of a batch, in the order of `keys`."""
        columns = [self._column(samples, part, key, spec) for part, key, spec, _ in self._parts]
        if self.whole_batches:
            return copied([column[0] for column in columns], allocate)
        pairs = zip(columns, self._parts, strict=True)
        stacked = allocate([(_stacked_shape(column, spec), _dtype(column, spec)) for column, (_, _, spec, _) in pairs])
        for target, column, (_, _, spec, pad) in zip(stacked, columns, self._parts, strict=True):
            _fill(target, column, spec, pad)
        return stacked

    def collate_one(self, sample: Sample) -> list[np.ndarray[Any, Any]]:
        """The arrays of a batch of one sample, where nothing has to be padded: the same as `collate`, in a third of the time."""
        return [np.array(self._column((sample,), part, key, spec)[0])[None] for part, key, spec, _ in self._parts]

    def _column(self, samples: Sequence[Sample], part: str, key: str, spec: ArraySpec) -> list[np.ndarray[Any, Any]]:
        inputs, dtype, shape = part == "inputs", spec.dtype, spec.shape
        if not spec.variable and dtype.kind in _NUMBERS and (fitting := _fitting_column(samples, inputs, key, spec)):
            return fitting
        column: list[Any] = []
        for sample in samples:
            values = sample.inputs if inputs else sample.targets
            try:
                value = values[key]
            except (KeyError, TypeError, IndexError):
                raise DataError(_missing(sample, part, key, values)) from None
            if type(value) is np.ndarray and value.dtype is dtype and value.shape == shape:  # nothing to convert
                column.append(value)
                continue
            if isinstance(value, np.generic) and value.dtype is dtype and not shape:
                column.append(value)
                continue
            try:
                column.append(spec.conform(value))
            except (ValueError, OverflowError) as error:
                raise DataError(_mismatch(sample, part, key, spec, value, str(error))) from None
        return column

    def check(self, sample: Sample) -> None:
        """Raises if a sample does not match the specs."""
        for part, key, spec, _ in self._parts:
            self._column((sample,), part, key, spec)

    def length(self, sample: Sample, key: str | None) -> int:
        """The length of a sample: the first axis of `key`, else the largest variable axis of its inputs."""
        if key is not None:
            for part, name, _, _ in self._parts:
                if name == key:
                    return len(getattr(sample, part)[key])
            known = [name for _, name in self.keys()]
            raise DataError(f"bucket_by={key!r} names no input or target; there are {known}.")
        varying = [(name, spec) for part, name, spec, _ in self._parts if part == "inputs" and spec.variable]
        if not varying:
            problem = "bucket_boundaries are set, but no input has a variable axis (None in its spec)"
            raise DataError(f"{problem}. Name the entry whose length counts with bucket_by.")
        axes = (zip(np.shape(sample.inputs[name]), spec.shape, strict=False) for name, spec in varying)
        return max((size for pairs in axes for size, fixed in pairs if fixed is None), default=0)


def _fitting_column(samples: Sequence[Sample], inputs: bool, key: str, spec: ArraySpec) -> list[Any] | None:
    """The values of a column if all have the type and the shape of the spec already; to ask one by one takes twice as long."""
    try:
        column = [sample.inputs[key] for sample in samples] if inputs else [sample.targets[key] for sample in samples]
    except (KeyError, TypeError, IndexError):
        return None
    count = len(column)
    if not spec.rank:
        return column if list(map(type, column)).count(spec.dtype.type) == count else None
    if list(map(type, column)).count(np.ndarray) < count or [array.dtype for array in column].count(spec.dtype) < count:
        return None
    return column if [array.shape for array in column].count(spec.shape) == count else None


def split(keys: list[tuple[str, str]], arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[Arrays, Arrays]:
    """The arrays of a batch as dicts of inputs and of targets."""
    parts: dict[str, Arrays] = {"inputs": {}, "targets": {}}
    for (part, key), array in zip(keys, arrays, strict=True):
        parts[part][key] = array
    return parts["inputs"], parts["targets"]


def copied(arrays: list[np.ndarray[Any, Any]], allocate: Allocate) -> list[np.ndarray[Any, Any]]:
    """Copies of arrays in allocated memory."""
    copies = allocate([(array.shape, array.dtype) for array in arrays])
    for copy, array in zip(copies, arrays, strict=True):
        copy[...] = array
    return copies


def _stacked_shape(column: list[np.ndarray[Any, Any]], spec: ArraySpec) -> tuple[int, ...]:
    if not spec.variable:
        return (len(column), *column[0].shape)
    return (len(column), *(max(sizes) for sizes in zip(*(array.shape for array in column), strict=True)))


def _dtype(column: list[np.ndarray[Any, Any]], spec: ArraySpec) -> np.dtype[Any]:
    if spec.dtype.kind not in "US":
        return spec.dtype
    return max((array.dtype for array in column), key=lambda dtype: dtype.itemsize)


def _fill(target: np.ndarray[Any, Any], column: list[np.ndarray[Any, Any]], spec: ArraySpec, pad: Any) -> None:
    if not spec.variable and spec.rank and spec.dtype.kind not in "US":
        np.concatenate(column, out=target.reshape(-1, *target.shape[2:]))
        return
    if not spec.rank and spec.dtype.kind in _NUMBERS:
        target[:] = np.fromiter(column, spec.dtype, len(column))
        return
    if not spec.variable:
        for row, array in enumerate(column):
            target[row] = array
        return
    if spec.dtype.kind in "US" and pad == 0:
        pad = ""
    for row, array in enumerate(column):
        if array.shape != target.shape[1:]:
            target[row] = pad
        region: tuple[Any, ...] = (row, *map(slice, array.shape))
        target[region] = array


def _missing(sample: Sample, part: str, key: str, values: Any) -> str:
    which = f"The {part} of {sample.identity()}"
    if isinstance(values, dict):
        return f"{which} have no {key!r}, which the specs ask for. Received keys: {sorted(map(str, values))}."
    return (
        f"{which} must be a dict of arrays when they reach the batch, with the key {key!r}. Received: {type(values).__name__}. "
        f"Let the last processor make it: sample.new_{part}({{{key!r}: …}})."
    )


def _mismatch(sample: Sample, part: str, key: str, spec: ArraySpec, value: Any, reason: str) -> str:
    what = reason if reason not in ("shape", "dtype") and reason else f"the {reason or 'value'} does not match"
    if "inhomogeneous" in reason:
        what = "it is ragged"
    return (
        f"{part}[{key!r}] of {sample.identity()} does not match its spec: {what}. "
        f"Expected: shape={spec.shape}, dtype={spec.dtype.name}. Received: {describe(value)}."
    )
