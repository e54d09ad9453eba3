"""The evaluator: keeps embeddings and labels of a validation, and compares all pairs at its end."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scena.data.sample import Sample
from scena.evaluation.evaluator import Evaluator
from scena.evaluation.verification.params import VerificationParams
from scena.model.metric_learning.verification import ErrorRates, error_rates, pair_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class VerificationEvaluator(Evaluator[VerificationParams]):
    """EER, its threshold, and TAR@FAR over all pairs of samples.

    Classes need not be those of the training. A subclass may name the output and the target it reads in `output` and `target`.

    Args:
        params: the false accept rates to report.
    """

    output = "embedding"
    target = "label"

    def __enter__(self) -> Self:
        self.embeddings: list[np.ndarray] = []
        self.labels: list[int] = []
        self._scores: tuple[np.ndarray, np.ndarray] | None = None
        return self

    def update_state(self, sample: Sample) -> None:
        """Keeps an embedding and its label."""
        self.embeddings.append(np.array(sample.outputs[self.output], "float32"))
        self.labels.append(int(sample.targets[self.target]))

    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        """The cosines of genuine and of impostor pairs."""
        if self._scores is None:
            self._scores = pair_scores(
                np.stack(self.embeddings), np.array(self.labels), most_impostors=self.params.most_impostors
            )
        return self._scores

    def rates(self) -> ErrorRates | None:
        """The error rates at each threshold; None where there are no genuine or no impostor pairs."""
        counts = np.unique(self.labels, return_counts=True)[1]
        return error_rates(*self.scores()) if len(counts) > 1 and counts.max() > 1 else None

    def result(self) -> dict[str, Any]:
        """EER, its threshold, TAR@FAR; not a number where there are no pairs to compare."""
        rates = self.rates()
        found: dict[str, Any] = {
            "eer": rates.eer if rates else float("nan"),
            "eer_threshold": rates.eer_threshold if rates else float("nan"),
        }
        for far in self.params.far:
            found[f"tar_at_far_{far:g}"] = rates.tar_at(far) if rates else float("nan")
        return found

    def plots(self) -> "dict[str, Figure]":
        """The DET curve, the rates over the threshold, and the scores of both kinds of pairs."""
        from scena.evaluation.verification.plots import det_figure, rates_figure, scores_figure

        rates = self.rates()
        if rates is None:
            return {}
        return {
            "DET curve": det_figure({"": rates}),
            "Error rates": rates_figure(rates),
            "Scores": scores_figure(*self.scores()),
        }
