"""Processors on their own, without a data class: samples in, samples out."""

from collections.abc import Iterable, Iterator
from typing import Any

from scena.data.collate import Collator
from scena.data.cursor import Cursor
from scena.data.generator import as_generator, has_random_access
from scena.data.inprocess import InProcessEngine
from scena.data.modes import PipelineMode
from scena.data.params import DataBaseParams, DataGeneratorParams, DataPipelineParams, DataProcessorPipelineParams
from scena.data.plan import plan_segments
from scena.data.processor import steps_of
from scena.data.sample import Sample
from scena.data.work import Work


class SamplePipeline:
    """Applies a processor pipeline to samples, in order.

    Example: `params.pre_proc.create(DataPipelineParams(limit=100), params).apply(samples)`
    """

    def __init__(
        self,
        params: DataProcessorPipelineParams,
        pipeline_params: DataPipelineParams,
        data_params: DataBaseParams,
        mode: PipelineMode = PipelineMode.PREDICTION,
        seed: int = 0,
    ) -> None:
        self.mode = mode
        self.pipeline_params = pipeline_params
        self.data_params = data_params
        self.seed = seed
        self._steps = steps_of(params, mode)

    def apply(self, samples: Iterable[Sample] | DataGeneratorParams) -> Iterator[Sample]:
        """The processed samples, one after the other. In training mode each call is epoch 0."""
        if not self._steps and self.pipeline_params.limit is None and not isinstance(samples, DataGeneratorParams):
            return iter(samples)
        return self._run(samples)

    def _run(self, samples: Any) -> Iterator[Sample]:
        generator = as_generator(samples, self.mode)
        work = Work(
            mode=self.mode, pipeline=self.pipeline_params, data=self.data_params, seed=self.seed, generator=generator,
            collator=Collator({}, {}, {}, self.mode),
            segments=plan_segments(self._steps, random_access=has_random_access(generator), batch_size=1,
                                   bucketing=False, skipping=False),
        )  # fmt: skip
        work.may_be_empty = True
        for piece, _ in InProcessEngine(work).pieces(Cursor(), repeat=False):
            yield from piece.samples
