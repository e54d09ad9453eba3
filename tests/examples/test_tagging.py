"""Tags of letters keep the contract, whatever is padded. How well it finds fields: test_readmes.py."""

from pathlib import Path

import numpy as np

from examples.tagging.data import TAGS, Lines
from examples.tagging.evaluator import fields
from examples.tagging.params import LinesParams, TextsParams
from examples.tagging.scenario import TaggingScenario
from scena import PipelineMode
from scena.testing import run_scenario_test


def test_a_line_has_a_tag_for_each_letter() -> None:
    lines = Lines(LinesParams(count=50), PipelineMode.TRAINING)
    for index in range(50):
        sample = lines[index]
        assert len(sample.inputs["letters"]) == len(sample.targets["tags"]) == len(sample.meta["text"])
        assert set(sample.targets["tags"]) <= set(range(len(TAGS)))


def test_fields_are_runs_of_a_tag() -> None:
    assert fields(np.array([0, 1, 1, 0, 2, 3, 3])) == {(1, 3, 1), (4, 5, 2), (5, 7, 3)}


def test_contract(tmp_path: Path) -> None:
    params = TaggingScenario.default_trainer_params()
    params.scenario.model.units = 4
    params.gen.train_val.count = 200
    source = TextsParams(texts=["paid 12.50 to mona on 3.11.", "x"])
    run_scenario_test(TaggingScenario, params, directory=tmp_path, predict_source=source)
