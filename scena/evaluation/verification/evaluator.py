"""Verification as an evaluator: EER and TAR@FAR of embeddings over all pairs of samples, and their figures for a report."""

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scena.data.sample import Sample
from scena.evaluation.evaluator import Evaluator
from scena.evaluation.verification.params import VerificationParams
from scena.model.metric_learning.verification import ErrorRates, error_rates, pair_scores
from scena.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TICKS = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
POINTS = 2000
"""A curve is drawn from at most so many thresholds."""


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
        rates = self.rates()
        if rates is None:
            return {}
        return {
            "DET curve": det_figure({"": rates}),
            "Error rates": rates_figure(rates),
            "Scores": scores_figure(*self.scores()),
        }


def det_figure(curves: dict[str, ErrorRates]) -> "Figure":
    """False rejects over false accepts of each curve; scores that are normally distributed give a straight line."""
    figure = new_figure(5, 5)
    axes = figure.add_subplot()
    for name, rates in curves.items():
        chosen = _chosen(rates)
        far, frr = rates.far[chosen], rates.frr[chosen]
        inside = (far > 0) & (far < 1) & (frr > 0) & (frr < 1)
        equal = f"EER {100 * rates.eer:.2f} %"
        label = f"{name} ({equal})" if name else equal
        axes.plot(_deviates(far[inside]), _deviates(frr[inside]), label=label)
        axes.plot(*(2 * [_deviates(np.array([max(rates.eer, TICKS[0])]))]), "o", color=axes.lines[-1].get_color())
    low, high = _deviates(np.array([TICKS[0], TICKS[-1]]))
    axes.plot([low, high], [low, high], ":", color="grey", label="equal rates")
    ticks, names = _deviates(np.array(TICKS)), [f"{100 * tick:g} %" for tick in TICKS]
    axes.set_xticks(ticks, names, rotation=45)
    axes.set_yticks(ticks, names)
    axes.set(xlim=(low, high), ylim=(low, high), xlabel="false accepts", ylabel="false rejects", aspect="equal")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper left", frameon=False)
    return figure


def rates_figure(rates: ErrorRates) -> "Figure":
    """Both rates over the threshold."""
    figure = new_figure(5, 4)
    axes = figure.add_subplot()
    chosen = _chosen(rates)
    axes.plot(rates.thresholds[chosen], rates.far[chosen], label="false accepts")
    axes.plot(rates.thresholds[chosen], rates.frr[chosen], label="false rejects")
    axes.axvline(rates.eer_threshold, linestyle=":", color="grey", label=f"equal at {rates.eer_threshold:.3f}")
    axes.set(xlabel="threshold", ylabel="rate")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper left", frameon=False)
    return figure


def scores_figure(genuine: np.ndarray, impostors: np.ndarray) -> "Figure":
    """How the scores of both kinds of pairs are distributed."""
    figure = new_figure(5, 4)
    axes = figure.add_subplot()
    bins = np.linspace(min(genuine.min(), impostors.min()), max(genuine.max(), impostors.max()) + 1e-9, 60)
    for scores, name in ((impostors, "different"), (genuine, "the same")):
        axes.hist(scores, bins=list(bins), density=True, alpha=0.6, label=f"{name} ({len(scores):,} pairs)")
    axes.set(xlabel="cosine", ylabel="density")
    figure.legend(loc="outside upper left", frameon=False)
    return figure


def _chosen(rates: ErrorRates) -> np.ndarray:
    """Thresholds that show the curve: evenly many along each of the two rates, so that rare errors are seen too."""
    if len(rates.thresholds) <= POINTS:
        return np.arange(len(rates.thresholds))
    steps = np.unique(np.geomspace(1, len(rates.thresholds), POINTS // 2).astype(int)) - 1
    return np.unique(np.concatenate([steps, len(rates.thresholds) - 1 - steps,
                                     np.linspace(0, len(rates.thresholds) - 1, POINTS).astype(int)]))  # fmt: skip


def _deviates(shares: np.ndarray) -> np.ndarray:
    """Where a share of a normal distribution ends, in standard deviations."""
    normal = NormalDist()
    return np.array([normal.inv_cdf(float(share)) for share in shares])
