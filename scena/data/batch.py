"""Batches, and the cursor: the position of a stream after a batch."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scena.data.sample import Sample


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
        """The cursor as a JSON value."""
        return {"epoch": self.epoch, "batch": self.batch, "samples": self.samples, "state": self.state}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Cursor":
        """The cursor that `to_json` wrote."""
        return cls(int(value["epoch"]), int(value["batch"]), int(value["samples"]), value.get("state"))


Arrays = dict[str, np.ndarray[Any, Any]]


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
        for row in range(self.size):
            yield Sample(
                inputs={key: array[row] for key, array in self.inputs.items()},
                targets={key: array[row] for key, array in self.targets.items()},
                outputs=None if outputs is None else {key: array[row] for key, array in outputs.items()},
                meta=self.meta[row] if row < len(self.meta) else None,
            )

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
