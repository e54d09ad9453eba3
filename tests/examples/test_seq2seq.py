"""The encoder–decoder keeps the contract, and learns to read dates."""

from pathlib import Path

import pytest

from examples.seq2seq.codec import decode, encode
from examples.seq2seq.params import TextsParams
from examples.seq2seq.scenario import DatesScenario
from scena.testing import run_scenario_test


def test_characters_come_back() -> None:
    assert decode(encode("24 Dec 2001")) == "24 dec 2001"


def test_contract(tmp_path: Path) -> None:
    params = DatesScenario.default_trainer_params()
    params.scenario.model.units = 8
    run_scenario_test(
        DatesScenario, params, directory=tmp_path, predict_source=TextsParams(texts=["3 March 1998", "x"])
    )


@pytest.mark.long
def test_dates_are_read_exactly(tmp_path: Path) -> None:
    params = DatesScenario.default_trainer_params()
    params.output_dir, params.random_seed = tmp_path / "run", 1
    history = DatesScenario.create_trainer(params).train()
    assert max(row["lav_exact"] for row in history) >= 0.95
    predictor = DatesScenario.create_predictor(tmp_path / "run" / "best")
    answers = [
        decode(sample.outputs["answer"])
        for sample in predictor.predict(TextsParams(texts=["3 March 1998", "24.12.2001"]))
    ]
    assert answers == ["1998-03-03", "2001-12-24"]
