"""lr-find on trainings that are harder than usual: noise that hides the fall of the loss, and validations without a loss."""

import logging
import re
from pathlib import Path
from typing import Any

import keras
import pytest

from scena import Evaluator, ScenarioBase, TrainValParams
from scena.errors import TrainingError
from scena.model.training_model import TrainingModel
from scena.training.params import BestBy
from scena.training.schedules.params import RateFinderParams
from scena.training.schedules.rate_finder import FoundRates, find_rate
from scena.training.trigger import Trigger
from tests.toy.model import ToyModel
from tests.toy.params import HalvesParams, ToyModelParams, ToyScenarioParams
from tests.training.toy_runs import toy_params


class NoisyModel(ToyModel):
    """Some batches are harder than others, whatever is learned."""

    def _loss(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        loss = super()._loss(inputs, targets, outputs)["loss"]
        return {"loss": loss + self.params.noise * keras.ops.mean(inputs["x"]) + self.params.shift}

    def training_model_cls(self) -> Any:
        return WithoutLoss if self.params.wrong == "no loss" else TrainingModel


class WithoutLoss(TrainingModel):
    def test_step(self, data: Any) -> Any:
        (x,) = data
        self.measures.model.accuracy.update_state(x["targets"]["y"], self(x, training=False)["pred"])
        return {"acc": self.measures.model.accuracy.result()}


class NoisyModelParams(ToyModelParams, builds=":NoisyModel"):
    noise: float = 0.0
    shift: float = 0.0


class Errors(Evaluator[Any]):
    def __enter__(self) -> Any:
        self.wrong = 0
        return self

    def update_state(self, sample: Any) -> None:
        self.wrong += int(sample.outputs["pred"].argmax() != sample.targets["y"])

    def result(self) -> dict[str, float]:
        return {"wrong": float(self.wrong)}


class NoisyScenario(ScenarioBase[ToyScenarioParams, TrainValParams[HalvesParams]]):
    @classmethod
    def default_params(cls) -> ToyScenarioParams:
        return ToyScenarioParams(model=NoisyModelParams())

    @classmethod
    def evaluator_cls(cls) -> Any:
        return Errors


def found(directory: Path, finder: RateFinderParams, **changes: Any) -> FoundRates:
    params = toy_params(directory, NoisyScenario, gen__train__batch_size=16, **changes)
    return find_rate(finder, params, NoisyScenario(params.scenario))


def test_a_range_test_that_noise_hides_is_repeated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    finder = RateFinderParams(highest=100, steps=100, budget=Trigger(0))
    quiet = found(tmp_path, finder)
    assert quiet.tests == 1 and quiet.suggestion is not None
    with caplog.at_level(logging.INFO, logger="scena"):
        noisy = found(tmp_path, finder, scenario__model__noise=7.0)
    assert 1 < noisy.tests <= 4 and noisy.suggestion is not None
    assert caplog.text.count("The range test is repeated with other batches.") == noisy.tests - 1
    assert 0.1 < noisy.suggestion / quiet.suggestion < 10


def test_noise_that_stays_is_refused(tmp_path: Path) -> None:
    hidden = found(tmp_path, RateFinderParams(highest=100, steps=50, budget=Trigger(0)), scenario__model__noise=20.0)
    assert hidden.suggestion is None and hidden.tests == 4
    assert re.search(r"within 4 × \d+ batches the loss falls by .* at most, and its noise is", hidden.refusal)


def test_a_loss_may_be_negative(tmp_path: Path) -> None:
    finder = RateFinderParams(highest=100, steps=100, budget=Trigger(0))
    usual, shifted = found(tmp_path, finder), found(tmp_path, finder, scenario__model__shift=-10.0)
    assert shifted.suggestion == pytest.approx(usual.suggestion)


def test_range_tests_take_no_more_than_the_budget(tmp_path: Path) -> None:
    finder = RateFinderParams(highest=100, steps=50, budget=Trigger(110, "steps"))
    assert found(tmp_path, finder, scenario__model__noise=20.0).tests == 2


NO_LOSS = {"scenario__model__wrong": "no loss", "lav_every_n": Trigger(1)}
SHORT = RateFinderParams(highest=100, steps=100, budget=Trigger(60, "steps"))


@pytest.mark.parametrize(
    ("best", "measure", "most"),
    [(None, "1 - val_acc", 1), (BestBy("min", "lav_wrong"), "lav_wrong", 64)],
)
def test_without_a_validation_loss_the_best_value_decides(tmp_path: Path, best: Any, measure: str, most: float) -> None:
    result = found(tmp_path, SHORT, best=best, **NO_LOSS)
    assert result.suggestion is not None and result.measure == measure
    assert all(0 <= trial.loss < result.untrained <= most for trial in result.trials if trial.rate == 0.1)


def test_without_anything_to_compare_rates_by(tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match=r"the validation has no loss, and .* by the training's 'loss'. Name a value"
    ):
        found(tmp_path, SHORT, best=BestBy("min", "train_loss"), **NO_LOSS)
