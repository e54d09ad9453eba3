"""Tests of the scenario: run them with pytest. Start with `test_data` when the input looks wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.testing import run_scenario_test

from .scenario import TemplateScenario


@pytest.fixture
def params(tmp_path: Path) -> Any:
    """Trainer parameters with small list files. [Point them to files of your own.]"""
    rng = np.random.default_rng(0)
    lists = {}
    for name, count in (("train", 60), ("val", 20)):
        paths = [tmp_path / f"{name}{number}.txt" for number in range(count)]
        for path in paths:
            label = rng.integers(0, 2)
            angle = rng.uniform(0, 2 * np.pi)
            path.write_text(f"{(0.5 + label) * np.cos(angle)} {(0.5 + label) * np.sin(angle)}")
            path.with_suffix(".gt.txt").write_text(str(label))
        lists[name] = tmp_path / f"{name}.lst"
        lists[name].write_text("\n".join(map(str, paths)))
    made = TemplateScenario.default_trainer_params()
    made.gen.train_source.lists = [str(lists["train"])]
    made.gen.val_source.lists = [str(lists["val"])]
    return made


def test_data(params: Any) -> None:
    """Runs the input pipeline in this process, sample by sample: set a breakpoint in a processor and debug."""
    params.gen.train.num_processes = 0
    data = TemplateScenario(params.scenario).create_data()
    with params.gen.train_data(data).generate_input_samples(auto_repeat=False) as samples:
        labels = [int(sample.targets["label"]) for sample in samples]
    assert len(labels) == 60 and set(labels) == {0, 1}


def test_contract(params: Any, tmp_path: Path) -> None:
    """Everything Scena promises for any scenario."""
    run_scenario_test(TemplateScenario, params, directory=tmp_path / "contract")
