"""Decides which samples of a stream go together: chunks of equal size, batches, or batches of similar length."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from scena.data.errors import DataError
from scena.data.sample import Sample
from scena.data.stages.context import PipelineContext

Address = tuple[int, int]


class Buckets:
    """Groups samples. Boundaries [10, 20]: bucket 0 holds lengths below 10, bucket 1 below 20, bucket 2 the rest."""

    def __init__(self, context: PipelineContext, batches: bool, chunk: int) -> None:
        params = context.pipeline
        self.boundaries = params.bucket_boundaries if batches and context.batching else []
        self.sizes = [chunk]
        if self.boundaries:
            self.sizes = params.bucket_batch_sizes or [params.batch_size] * (len(self.boundaries) + 1)
        self.drop_remainder = batches and params.batch_drop_remainder
        self.arriving: Address = (0, 0)
        """The address of the sample that is being read, set by the reader."""
        self._context = context
        self._checked = batches and context.batching and context.skipped is not None
        self._collator = context.collator
        self._key = params.bucket_by
        self._waiting: list[list[tuple[Sample, Address]]] = [[] for _ in self.sizes]

    def cut(self, items: Iterable[tuple[Sample, int, int]]) -> Iterator[list[Sample]]:
        """Yields a group as soon as it is full, and the incomplete ones at the end."""
        for sample, _, _ in items:
            if self._checked and not self._fits(sample):
                continue
            stage_index = (
                bisect_right(self.boundaries, self._collator.length(sample, self._key)) if self.boundaries else 0
            )
            bucket = self._waiting[stage_index]
            bucket.append((sample, self.arriving))
            if len(bucket) == self.sizes[stage_index]:
                self._waiting[stage_index] = []
                yield [waiting for waiting, _ in bucket]
        for stage_index, bucket in enumerate(self._waiting):
            if bucket and not self.drop_remainder:
                self._waiting[stage_index] = []
                yield [waiting for waiting, _ in bucket]

    def _fits(self, sample: Sample) -> bool:
        """Whether a sample matches the specs; asked where one that does not may be left out."""
        try:
            self._collator.check(sample)
        except DataError as error:
            self._context.failed(error)
            return False
        return True

    def pending(self) -> list[Address]:
        """The addresses of samples that were taken but not given yet."""
        return [address for bucket in self._waiting for _, address in bucket]
