"""`Predictor`: samples in, predicted and post-processed samples out, lazily and in order."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from scena.data.batch import Batch
from scena.data.modes import PipelineMode
from scena.data.params import DataGeneratorParams
from scena.data.pipeline import DataPipeline
from scena.data.sample import Sample
from scena.model.built import BuiltModel
from scena.model.tf_engine import Arrays, TensorFlowPredictor
from scena.prediction.params import PredictorParams


class Predictor:
    """Predicts with one trained model.

    Args:
        params: batch size, device, what to keep.
        built: the model with its weights loaded.
    """

    def __init__(self, params: PredictorParams, built: BuiltModel) -> None:
        self.params = params
        self.built = built
        self._model = TensorFlowPredictor(
            built.prediction_model, built.data.input_layer_specs(), eager=params.run_eagerly
        )

    @property
    def data(self) -> Any:
        """The data object: specs, processors, resources."""
        return self.built.data

    def predict(self, source: DataGeneratorParams) -> Iterator[Sample]:
        """Predicts all samples of a source, pre- and post-processed."""
        return self.predict_pipeline(self._pipeline(source))

    def predict_raw(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Predicts samples as a generator would hand them out."""
        return self.predict_pipeline(self._pipeline(samples))

    def predict_pipeline(self, pipeline: DataPipeline) -> Iterator[Sample]:
        """Predicts the batches of a pipeline."""
        post_proc = self.built.data.create_post_proc(pipeline.mode)
        return iter(post_proc.apply(chain.from_iterable(self._batches(pipeline))))

    def predict_batch(self, batch: Batch) -> Arrays:
        """The raw outputs of one batch."""
        return self._model.predict(batch.inputs)

    def print_prediction(self, sample: Sample, print_fn: Callable[[str], None] = print) -> None:
        """Prints a predicted sample as the model wants it printed."""
        self.built.model._print_prediction(sample, self.built.data, print_fn)

    def _pipeline(self, source: DataGeneratorParams | Iterable[Sample]) -> DataPipeline:
        mode = PipelineMode.EVALUATION if self.params.include_targets else PipelineMode.PREDICTION
        return self.built.data.create_pipeline(mode, self.params.pipeline, source)

    def _batches(self, pipeline: DataPipeline) -> Iterator[Iterable[Sample]]:
        with pipeline.stream(repeat=False) as batches:
            for batch in batches:
                yield batch.samples(self.predict_batch(batch))
