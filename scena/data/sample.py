"""What flows through a pipeline: samples, batches of them, and the cursor, the position of a stream after a batch."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    pass


class Sample:
    """Inputs, targets, outputs and meta of one instance. Treat it as immutable: `new_…` return changed copies.

    During processing `inputs` and `targets` may be anything (a file name at first); what arrives at the batch must be a
    dict of arrays that match the specs of the data class. `meta` is kept beside the batch as it is.
    """

    __slots__ = ("index", "inputs", "meta", "outputs", "targets")

    def __init__(self, inputs: Any = None, targets: Any = None, outputs: Any = None, meta: Any = None) -> None:
        self.inputs = inputs
        self.targets = targets
        self.outputs = outputs
        self.meta = meta
        self.index: int | None = None
        """Position in the source, set by the pipeline: it names the sample in messages."""

    def _copy(self) -> Self:
        copy = type(self).__new__(type(self))
        copy.inputs = self.inputs
        copy.targets = self.targets
        copy.outputs = self.outputs
        copy.meta = self.meta
        copy.index = self.index
        return copy

    def new_inputs(self, inputs: Any) -> Self:
        """A copy with other inputs."""
        copy = self._copy()
        copy.inputs = inputs
        return copy

    def new_targets(self, targets: Any) -> Self:
        """A copy with other targets."""
        copy = self._copy()
        copy.targets = targets
        return copy

    def new_outputs(self, outputs: Any) -> Self:
        """A copy with other outputs."""
        copy = self._copy()
        copy.outputs = outputs
        return copy

    def new_meta(self, meta: Any) -> Self:
        """A copy with other meta."""
        copy = self._copy()
        copy.meta = meta
        return copy

    def identity(self) -> str:
        """How messages name this sample: its index in the source and a short form of its meta."""
        name = f"sample {self.index}" if self.index is not None else "a sample"
        if self.meta is None:
            return name
        meta = repr(self.meta)
        return f"{name} (meta: {meta if len(meta) <= 200 else meta[:197] + '...'})"

    def _parts(self) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in ("inputs", "targets", "outputs", "meta")}
        return {name: value for name, value in parts.items() if value is not None}

    def __repr__(self) -> str:
        from scena.display import short

        return f"Sample({', '.join(f'{name}={short(value)}' for name, value in self._parts().items())})"

    def _repr_html_(self) -> str:
        """A table for notebooks: types and shapes."""
        from scena.display import html_table, short

        return html_table([(name, short(value)) for name, value in self._parts().items()], title="Sample")


Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(slots=True)
class Cursor:
    """Where a stream of batches stands. `Cursor()` is the start."""

    epoch: int = 0
    """The epoch of the next batch."""
    batch: int = 0
    """Batches of this epoch that were handed out."""
    samples: int = 0
    """Samples of this epoch that were handed out."""
    state: Any = field(default=None, repr=False)
    """What else a restart needs; None where counting is enough."""

    def to_json(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "batch": self.batch, "samples": self.samples, "state": self.state}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Cursor":
        return cls(int(value["epoch"]), int(value["batch"]), int(value["samples"]), value.get("state"))


class Batch:
    """Arrays of several samples, stacked and padded.

    Attributes:
        inputs: arrays by name, each with a leading batch dimension (empty in mode TARGETS).
        targets: the same for targets (empty in mode PREDICTION).
        meta: the meta of each sample.
        size: number of samples.
        epoch: the epoch it belongs to.
        cursor: the position right after this batch.
        total: samples of the whole batch, if several processes share it; else `size`.
        counted: how many of these samples count; 0 if they are only here to keep step with other processes.
    """

    __slots__ = ("counted", "cursor", "epoch", "inputs", "meta", "size", "targets", "total")

    def __init__(self, inputs: Arrays, targets: Arrays, meta: list[Any], size: int, cursor: Cursor) -> None:
        self.inputs = inputs
        self.targets = targets
        self.meta = meta
        self.size = self.total = self.counted = size
        self.epoch = cursor.epoch
        self.cursor = cursor

    def samples(self, outputs: Arrays | None = None) -> Iterator[Sample]:
        """The batch as single samples (padded as they are in the batch), with the model's outputs if they are given."""
        inputs, targets = _rows(self.inputs, self.size), _rows(self.targets, self.size)
        predicted = repeat(None) if outputs is None else _rows(outputs, self.size)
        return map(Sample, inputs, targets, predicted, chain(self.meta, repeat(None)))

    def only_sample(self, outputs: Arrays) -> Sample:
        """The sample of a batch of one: what `samples` yields, in a third of the time."""
        return Sample(_first_row(self.inputs), _first_row(self.targets), _first_row(outputs), self.meta[0])

    def parts(self, size: int) -> "list[Batch]":
        """The batch as smaller ones of this size, without a copy."""
        if self.size <= size:
            return [self]

        def part(first: int) -> Batch:
            region = slice(first, min(first + size, self.size))
            inputs, targets = ({name: array[region] for name, array in arrays.items()} for arrays in self)
            return Batch(inputs, targets, self.meta[region], region.stop - first, self.cursor)

        return [part(first) for first in range(0, self.size, size)]

    def __iter__(self) -> Iterator[Arrays]:
        """Inputs and targets, so that a batch unpacks: `for inputs, targets in batches`."""
        yield self.inputs
        yield self.targets

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each array; batches with equal shapes can be stacked."""
        return (*(a.shape for a in self.inputs.values()), *(a.shape for a in self.targets.values()))

    def __repr__(self) -> str:
        shapes = {key: array.shape for key, array in {**self.inputs, **self.targets}.items()}
        return f"Batch({self.size} samples, {shapes}, {self.cursor})"


def _first_row(arrays: Arrays) -> dict[str, Any]:
    return {name: array[0] for name, array in arrays.items()}


def _rows(arrays: Arrays, size: int) -> list[dict[str, Any]]:
    """The arrays of each sample by name. Column by column, this takes half the time of indexing each row."""
    for name, array in arrays.items():
        if len(array) < size:
            raise IndexError(f"{name!r} has {len(array)} rows for {size} samples.")
    if not arrays:
        return [{} for _ in range(size)]
    (first, column), *others = arrays.items()
    rows = [{first: value} for value in column[:size]]
    for name, array in others:
        for row, value in zip(rows, array, strict=False):
            row[name] = value
    return rows
