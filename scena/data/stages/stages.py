"""Cuts a pipeline into segments that run in parallel, piece by piece, and segments that see the whole stream in order.

A piece is a run of consecutive samples. Pieces are cut by the index of samples and never by worker, so that the result
is the same for any number of processes. Both engines (in this process, and in parallel) execute the same plan.
"""

from collections.abc import Sequence
from typing import Any

from scena.data.processor import Step
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


class Segment:
    """Consecutive steps that run together.

    Attributes:
        parallel: pieces are independent of each other; else one process sees them in order.
        source: begins with the source itself (one without random access).
        steps: the processors.
        piece: samples in a piece of its input.
        out_piece: samples in a piece, or batch, of its output (serial segments).
        batches: its output are batches, not samples.
        exact: a serial segment that can be restored at any position; else it replays the epoch.
    """

    __slots__ = ("batches", "exact", "out_piece", "parallel", "piece", "source", "steps")

    def __init__(self, parallel: bool, source: bool = False) -> None:
        self.parallel = parallel
        self.source = source
        self.steps: list[Step] = []
        self.piece = 0
        self.out_piece = 0
        self.batches = False
        self.exact = False

    @property
    def generating(self) -> bool:
        """Whether the number of samples may change in it."""
        return any(step.generating for step in self.steps)

    def __repr__(self) -> str:
        kind = "parallel" if self.parallel else "serial"
        names = ["source"] * self.source + [step.name for step in self.steps] + ["batches"] * self.batches
        return f"<{kind} {' > '.join(names)}, pieces of {self.piece}>"


def plan_segments(
    steps: list[Step], *, random_access: bool, main_source: bool, batch_size: int, bucketing: bool, skipping: bool
) -> list[Segment]:
    """The segments of a pipeline.

    Args:
        steps: the active processors.
        random_access: whether any process can read the source by index.
        main_source: the source stays in the training process; what follows does not.
        batch_size: samples in a batch.
        bucketing: batches are formed by length.
        skipping: samples may be left out, and others take their places.
    """
    segments: list[Segment] = [] if random_access else [Segment(parallel=False, source=True)]
    for step in steps:
        last = segments[-1] if segments else None
        if not step.parallel:
            if last is None or last.parallel or (last.source and main_source):
                last = Segment(parallel=False)
                segments.append(last)
        else:
            if last is None or not last.parallel:
                last = Segment(parallel=True)
                segments.append(last)
            elif step.generating and last.generating:  # chunks of the second one are counted in samples of the first
                segments.append(Segment(parallel=False))
                last = Segment(parallel=True)
                segments.append(last)
            if step.chunk:
                last.piece = step.chunk
        last.steps.append(step)
    if not segments:
        segments.append(Segment(parallel=True))
    last = segments[-1]
    if last.source and main_source:  # batches are made in a worker, by copying
        segments.append(Segment(parallel=not bucketing))
    elif last.parallel and (bucketing or skipping or last.generating):
        segments.append(Segment(parallel=False))
    segments[-1].batches = True
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        segment.piece = segment.piece or batch_size
        segment.out_piece = (following.piece if following else 0) or batch_size
        if not segment.parallel and not segment.source:
            replays = bucketing and segment.batches and segment.generating  # what waits in buckets has no address then
            segment.exact = all(step.resumable for step in segment.steps) and not replays
    return segments
