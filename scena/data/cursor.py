"""The position of a pipeline as a small JSON value."""

from typing import Any


class Cursor:
    """Where a stream of batches stands. `Cursor()` is the start.

    Attributes:
        epoch: the epoch of the next batch.
        batch: batches of this epoch that were handed out.
        samples: samples of this epoch that were handed out.
        state: what else a restart needs; None where counting is enough.
    """

    __slots__ = ("batch", "epoch", "samples", "state")

    def __init__(self, epoch: int = 0, batch: int = 0, samples: int = 0, state: Any = None) -> None:
        self.epoch = epoch
        self.batch = batch
        self.samples = samples
        self.state = state

    def to_json(self) -> dict[str, Any]:
        """The cursor as a JSON value."""
        return {"epoch": self.epoch, "batch": self.batch, "samples": self.samples, "state": self.state}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Cursor":
        """The cursor that `to_json` wrote."""
        return cls(int(value["epoch"]), int(value["batch"]), int(value["samples"]), value.get("state"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cursor) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Cursor(epoch={self.epoch}, batch={self.batch}, samples={self.samples})"
