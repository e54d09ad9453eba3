"""LAV, load and validate: losses, metrics and the evaluator's results of a model on some data."""

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from scena.data.modes import PipelineMode
from scena.data.params import DataGeneratorParams
from scena.data.pipeline import DataPipeline
from scena.data.sample import Sample
from scena.evaluation.evaluator import Evaluator
from scena.evaluation.params import LAVParams
from scena.model.built import BuiltModel
from scena.model.tf_engine import TensorFlowEngine

logger = logging.getLogger(__name__)


class LAV:
    """Validates a model, in its prediction graph, with post-processing and the scenario's evaluator.

    Args:
        params: batch size, processes, device, eager mode.
        built: the model with its weights loaded.
        evaluator: called with each post-processed sample.
    """

    def __init__(self, params: LAVParams, built: BuiltModel, evaluator: Evaluator[Any] | None = None) -> None:
        self.params = params
        self.built = built
        self.evaluator: Evaluator[Any] = evaluator if evaluator is not None else Evaluator(None)
        self._model = built.validation_model()
        data = built.data
        self._engine = TensorFlowEngine(
            self._model, data.input_layer_specs(), data.target_layer_specs(), eager=params.run_eagerly
        )
        for method, missing in self._model.measures.left_out.items():
            logger.info("%s is left out: the prediction graph has no output %r.", method.strip("_"), missing)

    def run(
        self, source: DataGeneratorParams | Iterable[Sample], progress: Callable[[int], None] | None = None
    ) -> dict[str, float]:
        """Losses, metrics and evaluator results on one source of data.

        Args:
            source: what to validate on.
            progress: called with the number of samples of each batch, for a progress bar.
        """
        pipeline = self.built.data.create_pipeline(PipelineMode.EVALUATION, self.params.pipeline, source)
        return self.run_pipeline(pipeline, progress)

    def run_pipeline(self, pipeline: DataPipeline, progress: Callable[[int], None] | None = None) -> dict[str, float]:
        """The same on a pipeline that exists already."""
        self._model.reset_metrics()
        post_proc = self.built.data.create_post_proc(PipelineMode.EVALUATION)
        with self.evaluator:
            for count, sample in enumerate(post_proc.apply(self._predicted(pipeline, progress))):
                self.evaluator.update_state(sample)
                if count < self.params.print_limit:
                    self.built.model._print_evaluate(sample, self.built.data, logger.info)
            results = {name: float(value) for name, value in self._model.results().items()}
            results.update(self.evaluator.result())
        return results

    def _predicted(self, pipeline: DataPipeline, progress: Callable[[int], None] | None) -> Iterator[Sample]:
        return chain.from_iterable(self._batches(pipeline, progress))

    def _batches(self, pipeline: DataPipeline, progress: Callable[[int], None] | None) -> Iterator[Iterable[Sample]]:
        with pipeline.stream(repeat=False) as batches:
            for batch in batches:
                outputs = self._engine.evaluate(batch.inputs, batch.targets)
                if progress is not None:
                    progress(batch.size)
                yield batch.samples(outputs)
