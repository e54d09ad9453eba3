"""A fast path from a few samples to a batch and back: processors are created once, without a pipeline or processes.

It gives exactly the results of the pipeline. Processors may keep state, so each thread has its own.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from scena.data.batch import Batch, Cursor
from scena.data.database import DataBase
from scena.data.params import PipelineMode
from scena.data.processor import steps_of
from scena.data.sample import Sample
from scena.data.stages.collate import Collator, split
from scena.data.stages.mapping import MappingStep, apply_steps
from scena.data.stages.rng import SampleRandom


class DirectPath:
    """Pre- and post-processing of single samples in the calling thread.

    Args:
        data: the data whose processors and specs are used.
        mode: which processors apply, and whether there are targets.
    """

    def __init__(self, data: DataBase[Any], mode: PipelineMode) -> None:
        self._data = data
        self._mode = mode
        self._pre = steps_of(data.params.pre_proc, mode)
        self._post = steps_of(data.params.post_proc, mode)
        self.maps_before = not any(step.generating for step in self._pre) and not data.transforms_batches
        """Whether each sample gives exactly one and nothing changes the batch, so that this path applies."""
        self.maps_after = not any(step.generating for step in self._post)
        """The same for post-processing."""
        self._collator = Collator(data.input_layer_specs(), data.target_layer_specs(), data.padding_values(), mode)
        self._local = threading.local()

    def batch(self, samples: Sequence[Sample]) -> Batch:
        """The pre-processed samples as one batch."""
        steps, random = self._steps("pre"), SampleRandom(0, 0)
        processed = []
        for index, sample in enumerate(samples):
            sample.index = index
            processed.append(apply_steps(steps, sample, random, index, 0) if steps else sample)
        inputs, targets = split(self._collator.keys(), self._collator.collate(processed))
        return Batch(inputs, targets, [sample.meta for sample in processed], len(processed), Cursor())

    def post_process(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yields each sample after post-processing."""
        steps, random = self._steps("post"), SampleRandom(0, 0)
        for index, sample in enumerate(samples):
            sample.index = index
            yield apply_steps(steps, sample, random, index, 0) if steps else sample

    def _steps(self, place: str) -> list[MappingStep]:
        made: list[MappingStep] | None = getattr(self._local, place, None)
        if made is None:
            steps = self._pre if place == "pre" else self._post
            made = [MappingStep(step, step.params.create(self._data.params, self._mode)) for step in steps]
            setattr(self._local, place, made)
        return made
