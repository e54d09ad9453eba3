"""Rows of a table keep the contract. How well it predicts: test_readmes.py."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.tabular.make import write_customers
from examples.tabular.params import CustomersParams
from examples.tabular.scenario import TabularScenario
from scena import DataPipelineParams, PredictorParams
from scena.testing import run_scenario_test


@pytest.fixture(scope="module")
def customers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("customers")
    write_customers(directory)
    return directory


def params_of(customers: Path) -> Any:
    params = TabularScenario.default_trainer_params()
    params.gen.train_source.files = [str(customers / "train.csv")]
    few = customers / "few.csv"
    few.write_text("".join(customers.joinpath("val.csv").read_text().splitlines(keepends=True)[:91]))
    params.gen.val_source.files = [str(few)]
    params.gen.train.limit = 200
    params.scenario.model.units = [8]
    return params


def test_contract(customers: Path, tmp_path: Path) -> None:
    new = customers / "new.csv"
    new.write_text("customer,age,income,months,plan\nanna,24,,3,free\nben,51,42000,60.5,gold\n")
    source = CustomersParams(files=[str(new)])
    run_scenario_test(TabularScenario, params_of(customers), directory=tmp_path, predict_source=source)
    predictor = TabularScenario.create_predictor(tmp_path / "run" / "export")
    anna, ben = predictor.predict(source)
    row = {"age": 24, "income": None, "months": 3, "plan": "free"}  # as `scena serve` gets it: null is a missing number
    served = predictor.predict_sample(predictor.sample_from_json(row))
    assert np.isclose(served.outputs["leaves"], anna.outputs["leaves"], atol=1e-6)
    assert not np.isclose(served.outputs["leaves"], ben.outputs["leaves"], atol=1e-6)


def test_results_are_those_of_its_predictions(customers: Path, tmp_path: Path) -> None:
    """Losses with weights, and metrics with state, computed once more in numpy."""
    params = params_of(customers)
    params.epochs, params.output_dir, params.random_seed, params.gen.val.batch_size = 1, tmp_path / "run", 1, 40
    last = TabularScenario.create_trainer(params).train()[-1]
    pipeline = DataPipelineParams(batch_size=7)
    settings = PredictorParams(include_targets=True, pipeline=pipeline)
    samples = list(TabularScenario.create_predictor(tmp_path / "run/export", settings).predict(params.gen.val_source))
    left = np.array([sample.targets["left"] for sample in samples])
    logit = np.array([sample.outputs["logit"][0] for sample in samples], "float64")
    euros = np.abs([sample.targets["spent"] - sample.outputs["spends"] for sample in samples])
    weights = 1 + (params.scenario.model.leaving_weight - 1) * left
    entropy = weights * (left * np.logaddexp(0, -logit) + (1 - left) * np.logaddexp(0, logit))
    assert len(samples) == 90
    assert math.isclose(last["val_entropy"], entropy.mean(), rel_tol=1e-5)
    assert math.isclose(last["val_euros"], euros.mean(), rel_tol=1e-5)
    assert math.isclose(last["val_loss"], entropy.mean() + 0.1 * euros.mean(), rel_tol=1e-5)
    assert math.isclose(last["val_recall"], (logit[left == 1] > 0).mean(), abs_tol=1e-6)
    assert math.isclose(last["val_acc"], ((logit > 0) == left).mean(), abs_tol=1e-6)
