"""Processors on their own, without a data class: samples in, samples out."""

from collections.abc import Iterable, Iterator

from scena.data.batch import Cursor
from scena.data.engines.in_process import InProcessEngine
from scena.data.engines.workers.engine import ParallelEngine
from scena.data.params import (
    DataBaseParams,
    DataGeneratorParams,
    DataPipelineParams,
    DataProcessorPipelineParams,
    PipelineMode,
)
from scena.data.sample import Sample
from scena.data.stages.context import PipelineContext


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
        self.params = params
        self.mode = mode
        self.pipeline_params = pipeline_params
        self.data_params = data_params
        self.seed = seed

    def apply(self, samples: Iterable[Sample] | DataGeneratorParams) -> Iterator[Sample]:
        """The processed samples, one after the other, in order. In training mode each call is epoch 0."""
        context = PipelineContext(
            mode=self.mode,
            pipeline=self.pipeline_params,
            data=self.data_params,
            processors=self.params,
            collator=None,
            seed=self.seed,
            source=samples,
        )
        if self.pipeline_params.num_processes:
            engine = ParallelEngine(context, self.pipeline_params.num_processes)
            try:
                yield from engine.samples()
            finally:
                engine.close()
            return
        for chunk, _ in InProcessEngine(context).chunks(Cursor(), repeat=False):
            yield from chunk.samples
