"""Cuts a pipeline into stages that run in parallel, chunk by chunk, and stages that see the whole stream in order.

A chunk is a run of consecutive samples. Chunks are cut by the index of samples and never by worker, so that the result
is the same for any number of processes. Every engine executes the same stages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scena.data.processor import Step
from scena.data.sample import Sample


@dataclass(slots=True)
class Chunk:
    """Consecutive samples of an epoch."""

    number: int
    """Its position in the stream of chunks."""
    ordinals: Sequence[int]
    """The index of each sample in the stream that was cut into chunks."""
    samples: list[Sample] = field(default_factory=list)
    indices: Sequence[int] | None = None
    """Where to read the samples in the source, if they are not here yet."""
    after: Any = None
    """The position of the stage that made the chunk, right after it."""
    offsets: Sequence[int] | None = None
    """The address of each sample within the chunk."""


@dataclass(slots=True)
class Stage:
    """Consecutive steps that run together."""

    parallel: bool
    """Chunks are independent of each other; else one process sees them in order."""
    source: bool = False
    """Begins with the source itself (one without random access)."""
    steps: list[Step] = field(default_factory=list)
    chunk_size: int = 0
    """Samples in a chunk of its input."""
    out_chunk_size: int = 0
    """Samples in a chunk, or batch, of its output (serial stages)."""
    batches: bool = False
    """Its output consists of batches, not of samples."""
    exact: bool = False
    """A serial stage that can be restored at any position; else it replays the epoch."""

    @property
    def generating(self) -> bool:
        """Whether the number of samples may change in it."""
        return any(step.generating for step in self.steps)


def plan_stages(
    steps: list[Step], *, random_access: bool, main_source: bool, batch_size: int, bucketing: bool, skipping: bool
) -> list[Stage]:
    """The stages of a pipeline.

    Args:
        steps: the active processors.
        random_access: whether any process can read the source by index.
        main_source: the source stays in the training process; later stages do not.
        batch_size: samples in a batch.
        bucketing: batches are formed by length.
        skipping: samples may be skipped, and later ones fill the batch.
    """
    stages: list[Stage] = [] if random_access else [Stage(parallel=False, source=True)]
    for step in steps:
        last = stages[-1] if stages else None
        if not step.parallel:
            if last is None or last.parallel or (last.source and main_source):
                last = Stage(parallel=False)
                stages.append(last)
        else:
            if last is None or not last.parallel:
                last = Stage(parallel=True)
                stages.append(last)
            elif step.generating and last.generating:  # chunks of the second one are counted in samples of the first
                stages.append(Stage(parallel=False))
                last = Stage(parallel=True)
                stages.append(last)
            if step.chunk:
                last.chunk_size = step.chunk
        last.steps.append(step)
    if not stages:
        stages.append(Stage(parallel=True))
    last = stages[-1]
    if last.source and main_source:  # batches are made in a worker, by copying
        stages.append(Stage(parallel=not bucketing))
    elif last.parallel and (bucketing or skipping or last.generating):
        stages.append(Stage(parallel=False))
    stages[-1].batches = True
    for stage, following in zip(stages, [*stages[1:], None], strict=True):
        stage.chunk_size = stage.chunk_size or batch_size
        stage.out_chunk_size = (following.chunk_size if following else 0) or batch_size
        if not stage.parallel and not stage.source:
            replays = bucketing and stage.batches and stage.generating  # what waits in buckets has no address then
            stage.exact = all(step.resumable for step in stage.steps) and not replays
    return stages
