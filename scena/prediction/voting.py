"""Several models of one scenario predict together: `MultiModelPredictor` and the voters."""

from collections.abc import Iterator, Sequence

import numpy as np

from scena.backends.base import Arrays
from scena.data.batch import Batch
from scena.prediction.params import PredictorParams
from scena.prediction.predictor import Predictor


class MultiModelPredictor(Predictor):
    """Predicts with several models; each batch is prepared once, with the pipeline of the first model.

    Override `vote` in a scenario to combine the outputs as its task needs.

    Args:
        params: batch size, device, what to keep.
        predictors: one for each model.
    """

    def __init__(self, params: PredictorParams, predictors: Sequence[Predictor]) -> None:
        if not predictors:
            raise ValueError("A MultiModelPredictor needs at least one model. Received: none.")
        super().__init__(params, predictors[0].built)
        self.predictors = list(predictors)

    def predict_batch(self, batch: Batch) -> Arrays:
        """The outputs on which the models agreed."""
        return self.vote([predictor.predict_batch(batch) for predictor in self.predictors])

    def vote(self, outputs: list[Arrays]) -> Arrays:
        """Combines the outputs of the models: the mean of floating-point outputs, the majority of whole numbers."""
        return dict(_votes(outputs))


def mean_vote(values: list[np.ndarray]) -> np.ndarray:
    """The mean over the models, for probabilities and other real values."""
    return np.asarray(np.mean(np.stack(values), axis=0), dtype=values[0].dtype)


def majority_vote(values: list[np.ndarray]) -> np.ndarray:
    """The most frequent value over the models, the smallest of them in a tie, for class numbers."""
    stacked = np.stack(values)
    counts = np.stack([np.sum(stacked == candidate, axis=0) for candidate in np.unique(stacked)])
    return np.asarray(np.unique(stacked)[np.argmax(counts, axis=0)], dtype=values[0].dtype)


def _votes(outputs: list[Arrays]) -> Iterator[tuple[str, np.ndarray]]:
    for name, first in outputs[0].items():
        values = [output[name] for output in outputs]
        yield name, (mean_vote if np.issubdtype(first.dtype, np.floating) else majority_vote)(values)
