"""LAV, load and validate: losses, metrics and the evaluator's results of a model on some data."""

import copy
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scena.data.params import DataGeneratorParams, PipelineMode
from scena.data.pipeline import DataPipeline
from scena.data.sample import Arrays, Batch, Sample
from scena.evaluation.evaluator import Evaluator, LAVCallback
from scena.evaluation.measuring import MeasuredOutputs, MeasuredSteps, Measuring, OutputsOnly
from scena.evaluation.params import LAVParams
from scena.model.measures.bad_data import check_labels, explaining_step
from scena.prediction.runtimes.base import UnbuiltModel

if TYPE_CHECKING:
    from scena.model.built import BuiltModel
    from scena.model.measures.given_outputs import GivenOutputs

logger = logging.getLogger(__name__)

Progress = Callable[[int], None]
"""Called with the number of samples of each batch, for a progress bar."""
Observer = Callable[[Sample], None]
"""Called with each predicted, post-processed sample, for a dump or a report."""


class LAV:
    """Validates a model, in its prediction graph, with post-processing and the scenario's evaluator.

    A subclass is named by the scenario's `lav_cls`.

    Args:
        params: batch size, processes, device, eager mode.
        built: the model with its weights loaded, or opened by a runtime without Keras.
        evaluator: called with each post-processed sample.
    """

    callbacks: Sequence[LAVCallback] = ()
    """Called in every run; those of the scenario, unless others are set."""
    network: "Callable[[], BuiltModel] | None" = None
    """Builds the model in Keras, for losses and metrics of a model that another runtime opened."""

    def __init__(
        self, params: LAVParams, built: "BuiltModel | UnbuiltModel", evaluator: Evaluator[Any] | None = None
    ) -> None:
        self.params = params
        self.built = built
        self.evaluator: Evaluator[Any] = evaluator if evaluator is not None else Evaluator(None)
        self.results: dict[str, Any] = {}
        """What the last validation found."""
        self._kept: list[tuple[DataGeneratorParams, DataPipeline]] = []
        if not isinstance(built, UnbuiltModel):
            self._measuring  # noqa: B018  (a training creates its variables in this order)

    @property
    def measures(self) -> bool:
        """Whether losses and metrics are computed."""
        return not isinstance(self.built, UnbuiltModel) if self.params.metrics is None else self.params.metrics

    @cached_property
    def _measuring(self) -> Measuring:
        built = self.built
        if isinstance(built, UnbuiltModel):
            if self.measures:
                return MeasuredOutputs(built.runtime, lambda: self._network)
            logger.info("Losses and metrics are skipped, because they need Keras; --lav.metrics computes them.")
            return OutputsOnly(built.runtime)
        if not self.measures:
            return OutputsOnly.in_keras(built, eager=self.params.run_eagerly)
        steps = MeasuredSteps(built, eager=self.params.run_eagerly)
        for line in steps.model.measures.report_skipped():
            logger.info("%s", line)
        return steps

    @cached_property
    def _network(self) -> "BuiltModel":
        if not isinstance(self.built, UnbuiltModel):
            return self.built
        if self.network is None:
            raise ValueError(
                "Losses and metrics need the model in Keras; create the LAV with create_lav of the scenario."
            )
        return self.network()

    def measures_of_vote(self, create_model: Callable[[Any], Any]) -> "GivenOutputs | None":
        """Losses and metrics of outputs on which this model and others agreed; None if they are not computed."""
        if not self.measures:
            return None
        from scena.model.measures.given_outputs import GivenOutputs

        return GivenOutputs(create_model(self.built.data), self._network)

    def run(
        self,
        source: DataGeneratorParams | Iterable[Sample],
        progress: Progress | None = None,
        observer: Observer | None = None,
        callbacks: Iterable[LAVCallback] = (),
    ) -> dict[str, Any]:
        """Losses, metrics and evaluator results on one source of data.

        Args:
            source: what to validate on.
            progress: called with the number of samples of each batch.
            observer: called with each predicted sample.
            callbacks: callbacks of this run, beside those of the scenario.
        """
        called = [*self.callbacks, *callbacks]

        def observe(sample: Sample) -> None:
            for callback in called:
                callback.on_sample_end(source, sample)
            if observer is not None:
                observer(sample)

        self.begin(source, called)
        results = self.run_pipeline(self._pipeline_for(source), progress, observe if called else observer)
        for callback in called:
            callback.on_lav_end(source, results)
        return results

    def begin(self, source: Any, callbacks: Iterable[LAVCallback]) -> None:
        """Tells callbacks that samples of a source will follow."""
        for callback in callbacks:
            callback.lav = self
            callback.on_lav_begin(source)

    def _pipeline_for(self, source: DataGeneratorParams | Iterable[Sample]) -> DataPipeline:
        """A pipeline that preloads its samples serves all validations on its source, as those after each epoch of a training."""
        for known, pipeline in self._kept:
            if known == source:
                return pipeline
        pipeline = self.create_pipeline(source)
        if pipeline.keeps_samples and isinstance(source, DataGeneratorParams):
            self._kept.append((copy.deepcopy(source), pipeline))
        return pipeline

    def create_pipeline(self, source: DataGeneratorParams | Iterable[Sample]) -> DataPipeline:
        """The batches that a source is validated in."""
        return self.built.data.create_pipeline(PipelineMode.EVALUATION, self.params.pipeline, source)

    def run_pipeline(
        self, pipeline: DataPipeline, progress: Progress | None = None, observer: Observer | None = None
    ) -> dict[str, Any]:
        """The same on a pipeline that exists already."""
        with pipeline.stream(repeat=False) as batches:
            for sample in self.validate((batch, self.predict_batch(batch)) for batch in counted(batches, progress)):
                if observer is not None:
                    observer(sample)
        return self.results

    def rehearse(self, batches: list[Batch]) -> dict[str, Any]:
        """The results on a few batches, with nothing printed: whether model, post-processing and evaluator work at all."""
        before, self.params.print_limit = self.params.print_limit, 0
        try:
            for _ in self.validate((batch, self.predict_batch(batch)) for batch in batches):
                pass
        finally:
            self.params.print_limit = before
        return self.results

    def retrace(self) -> None:
        """Compiles again, after a layer has got other tensors."""
        self._measuring.retrace()

    def predict_batch(self, batch: Batch) -> Arrays:
        """The outputs of one batch; its losses and metrics are counted."""
        with explaining_step([batch], "LAV"):
            outputs = self._measuring.predict(batch)
        if self.params.check_labels:
            check_labels(batch, self._measuring.label_counts(batch, outputs))
        return outputs

    def single_batches(self, source: DataGeneratorParams | Iterable[Sample]) -> DataPipeline:
        """The samples of a source in their order, each a batch of its own."""
        alone = self.params.pipeline.replace(
            batch_size=1, batch_drop_remainder=False, bucket_boundaries=[], bucket_batch_sizes=[]
        )
        return self.built.data.create_pipeline(PipelineMode.EVALUATION, alone, source)

    def measure(self, batch: Batch) -> tuple[Arrays, dict[str, float]]:
        """The outputs of one batch, and the losses and metrics of this batch alone."""
        self._measuring.reset()
        outputs = self.predict_batch(batch)
        numbers = {name: value for name, value in self._measuring.results().items() if isinstance(value, float)}
        return outputs, numbers

    def no_means(self) -> set[str]:
        """Metrics that are no means over samples, such as AUC."""
        return self._measuring.no_means()

    def validate(self, predicted: Iterable[tuple[Batch, Arrays]]) -> Iterator[Sample]:
        """One validation: each sample after post-processing, once the evaluator has seen it. Sets `results` at its end."""
        self._measuring.reset()
        post_proc = self.built.data.create_post_proc(PipelineMode.EVALUATION)
        with self.evaluator:
            for count, sample in enumerate(post_proc.apply(unbatched(predicted))):
                self.evaluator.update_state(sample)
                if count < self.params.print_limit:
                    self.built.model._print_evaluate(sample, self.built.data, logger.info)
                yield sample
            self.results = {**self._measuring.results(), **self.evaluator.result()}

    def extract_dump_data(self, sample: Sample) -> Sample:
        """What `--dump` keeps of a predicted sample: targets, outputs and meta. Override it to keep more or less."""
        return sample.new_inputs(None)


def counted(batches: Iterable[Batch], progress: Progress | None) -> Iterator[Batch]:
    """The batches, each reported once it has been worked on."""
    for batch in batches:
        yield batch
        if progress is not None:
            progress(batch.size)


def unbatched(predicted: Iterable[tuple[Batch, Arrays]]) -> Iterator[Sample]:
    """The samples of predicted batches, one by one."""
    for batch, outputs in predicted:
        yield from batch.samples(outputs)
