"""Consecutive samples that travel through a pipeline together."""

from collections.abc import Sequence
from typing import Any

from scena.data.sample import Sample


class Piece:
    """Consecutive samples of an epoch.

    Attributes:
        number: its place in the stream of pieces.
        ordinals: the index of each sample in the stream that was cut into pieces.
        indices: where the samples are to be read in the source, if they are not here yet.
        samples: the samples.
        offsets: the address of each sample within the piece.
        after: the position of the segment that made the piece, right after it.
    """

    __slots__ = ("after", "indices", "number", "offsets", "ordinals", "samples")

    def __init__(self, number: int, ordinals: Sequence[int], samples: list[Sample] | None = None,
                 indices: Sequence[int] | None = None, after: Any = None) -> None:  # fmt: skip
        self.number = number
        self.ordinals = ordinals
        self.indices = indices
        self.samples: list[Sample] = samples if samples is not None else []
        self.offsets: Sequence[int] | None = None
        self.after = after
