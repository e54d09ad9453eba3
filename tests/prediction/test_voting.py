"""Several models vote; inputs are processed once."""

from pathlib import Path

import numpy as np
import pytest

from scena import MultiModelPredictor, PredictorParams, Resource, Sample
from scena.errors import ScenarioError
from scena.prediction.voting import majority_vote, mean_vote
from tests.evaluation.exporting import export
from tests.prediction.scenarios import TextScenario, ToArray, sequence
from tests.toy.params import HalvesParams
from tests.toy.scenario import ToyScenario


class Loudest(MultiModelPredictor):
    """The most certain model decides."""

    def vote(self, outputs: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        return {"pred": np.max([output["pred"] for output in outputs], axis=0)}


class LoudestScenario(ToyScenario):
    """The toy scenario with a voter of its own."""

    @classmethod
    def multi_predictor_cls(cls) -> type[Loudest]:
        return Loudest


def test_the_mean_of_probabilities(exports: list[Path]) -> None:
    source = HalvesParams(count=20)
    alone = [[sample.outputs for sample in ToyScenario.create_predictor(path).predict(source)] for path in exports]
    together = ToyScenario.create_predictor(exports)
    assert isinstance(together, MultiModelPredictor)
    for first, second, voted in zip(*alone, together.predict(source), strict=True):
        assert not np.allclose(first["pred"], second["pred"])
        np.testing.assert_allclose(voted.outputs["pred"], (first["pred"] + second["pred"]) / 2, atol=1e-7)


def test_a_scenario_supplies_its_voter(exports: list[Path]) -> None:
    sample = Sample(inputs={"x": np.ones(8, "float32")})
    alone = [ToyScenario.create_predictor(path).predict_sample(sample).outputs["pred"] for path in exports]
    voted = LoudestScenario.create_predictor(exports).predict_sample(sample)
    np.testing.assert_array_equal(voted.outputs["pred"], np.max(alone, axis=0))
    assert set(voted.outputs) == {"pred"}


def test_mean_and_majority() -> None:
    assert mean_vote([np.float32([0, 1]), np.float32([1, 1])]).tolist() == [0.5, 1.0]
    assert majority_vote([np.array([1, 2]), np.array([1, 3]), np.array([2, 3])]).tolist() == [1, 3]
    assert majority_vote([np.array([5]), np.array([4])]).tolist() == [4]  # the smaller one in a tie
    assert majority_vote([np.array([5]), np.array([4])]).dtype == np.array([5]).dtype


def test_inputs_are_processed_once(tmp_path: Path) -> None:
    exports = [export(tmp_path / str(seed), seed, TextScenario) for seed in (1, 2)]
    predictor = TextScenario.create_predictor(exports)
    before = ToArray.created
    assert predictor.predict_sample(sequence(4)).outputs["rounded"] == 20
    assert ToArray.created == before + 1


def test_models_that_prepare_inputs_differently_are_refused(exports: list[Path], tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("a b")
    other = ToyScenario.default_trainer_params()
    other.scenario.data.names = Resource(names)
    directory = export(tmp_path / "other", 3, ToyScenario, other)
    with pytest.raises(ScenarioError, match="prepare their inputs differently"):
        ToyScenario.create_predictor([exports[0], directory], PredictorParams())
    copy = export(tmp_path / "copy", 4, ToyScenario, other)
    ToyScenario.create_predictor([directory, copy])  # two copies of one resource are the same
