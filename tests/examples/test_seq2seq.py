"""The encoder–decoder keeps the contract. How well it reads dates: test_readmes.py."""

from pathlib import Path

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
