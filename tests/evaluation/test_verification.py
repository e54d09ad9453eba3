"""The evaluator of verification: numbers, what it says without pairs, and its figures."""

import math

import numpy as np
import pytest

from scena import Sample
from scena.evaluation.report.plots import png
from scena.evaluation.verification.evaluator import VerificationEvaluator, det_figure
from scena.evaluation.verification.params import VerificationParams
from scena.model.metric_learning.verification import error_rates


def evaluated(samples: int, people: int, spread: float, **params: object) -> VerificationEvaluator:
    """An evaluator that has seen embeddings around one direction for each person."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(people, 16))
    evaluator = VerificationEvaluator(VerificationParams(**params))
    with evaluator:
        for number in range(samples):
            person = number % people
            embedding = directions[person] + rng.normal(size=16) * spread
            evaluator.update_state(Sample(outputs={"embedding": embedding}, targets={"label": np.int32(person)}))
    return evaluator


def test_people_far_apart_are_told_apart_and_others_are_not() -> None:
    clear = evaluated(60, 10, 0.1).result()
    assert set(clear) == {"eer", "eer_threshold", "tar_at_far_0.01", "tar_at_far_0.001"}
    assert clear["eer"] == 0 and clear["tar_at_far_0.001"] == 1
    vague = evaluated(60, 10, 1.0).result()
    chance = evaluated(60, 10, 50.0).result()
    assert 0 < vague["eer"] < 0.35 < chance["eer"] < 0.65


def test_the_rates_to_report_are_chosen() -> None:
    found = evaluated(60, 10, 1.0, far=[0.1]).result()
    assert set(found) == {"eer", "eer_threshold", "tar_at_far_0.1"}


@pytest.mark.parametrize(("samples", "people"), [(5, 5), (5, 1)])
def test_without_pairs_there_is_no_number_and_no_figure(samples: int, people: int) -> None:
    evaluator = evaluated(samples, people, 0.1)
    assert all(math.isnan(value) for value in evaluator.result().values())
    assert evaluator.plots() == {}


def test_the_next_validation_starts_anew() -> None:
    evaluator = evaluated(60, 10, 1.0)
    before = evaluator.result()
    samples = [
        Sample(outputs={"embedding": e}, targets={"label": label})
        for e, label in zip(evaluator.embeddings, evaluator.labels, strict=True)
    ]
    with evaluator:
        for sample in samples:
            evaluator.update_state(sample)
        assert evaluator.result() == before


def test_figures_of_the_report() -> None:
    figures = evaluated(60, 10, 1.0).plots()
    assert list(figures) == ["DET curve", "Error rates", "Scores"]
    assert all(png(figure).startswith(b"\x89PNG") for figure in figures.values())


def test_normal_scores_give_a_straight_line_on_the_axes_of_the_det_curve() -> None:
    rng = np.random.default_rng(1)
    figure = det_figure({"normal": error_rates(rng.normal(2, 1, 50_000), rng.normal(0, 1, 50_000))})
    x, y = figure.axes[0].lines[0].get_data()
    inside = (np.abs(x) < 2) & (np.abs(y) < 2)
    slope, offset = np.polyfit(x[inside], y[inside], 1)
    assert (slope, offset) == (pytest.approx(-1, abs=0.05), pytest.approx(-2, abs=0.05))
    np.testing.assert_allclose(y[inside], slope * x[inside] + offset, atol=0.06)
