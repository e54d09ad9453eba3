"""Tests of the scenario: run them with pytest. Start with `test_data` when the input looks wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.testing import run_scenario_test

from .scenario import TemplateScenario


@pytest.fixture
def params(tmp_path: Path) -> Any:
    """Trainer parameters with a small table. [Write rows of your own here.]"""
    rng = np.random.default_rng(0)
    lines = ["height,width,place,kind"]
    for _ in range(200):
        kind = rng.integers(0, 3)
        height = "" if rng.random() < 0.1 else f"{rng.normal([50, 4, 150][kind], 10):.1f}"
        lines.append(
            f"{height},{rng.normal([40, 30, 2][kind], 5):.1f},{['wood', 'wall', 'pond'][kind]},{['fern', 'moss', 'reed'][kind]}"
        )
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    made = TemplateScenario.default_trainer_params()
    columns = made.scenario.data
    columns.numbers, columns.texts = ["height", "width"], ["place"]
    columns.target, columns.classes = "kind", ["fern", "moss", "reed"]
    made.gen.train_val.file = str(tmp_path / "table.csv")
    return made


def test_data(params: Any) -> None:
    """Runs the input pipeline in this process, sample by sample: set a breakpoint in a processor and debug."""
    params.gen.train.num_processes = 0
    data = TemplateScenario(params.scenario).create_data()
    with params.gen.train_data(data).generate_input_samples(auto_repeat=False) as samples:
        classes = [int(sample.targets["class"]) for sample in samples]
    assert len(classes) == 180 and set(classes) == {0, 1, 2}


def test_contract(params: Any, tmp_path: Path) -> None:
    """Everything Scena promises for any scenario."""
    run_scenario_test(TemplateScenario, params, directory=tmp_path / "contract")


def test_training_learns(params: Any, tmp_path: Path) -> None:
    """A short training reaches a value that only learning explains."""
    params.epochs, params.output_dir, params.random_seed = 5, tmp_path / "run", 1
    history = TemplateScenario.create_trainer(params).train()
    assert max(row["val_acc"] for row in history) > 0.9
