"""The tutorials keep Scena's contract, and learn."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from examples.tutorial.full.params import MLP, ImageFilesParams
from examples.tutorial.full.scenario import TutorialScenario as Full
from examples.tutorial.min.scenario import TutorialScenario as Minimal
from scena.data.sources.digits import load_digits
from scena.testing import run_scenario_test

FOLDER = Path(__file__).parents[2] / "examples" / "tutorial"


@pytest.fixture
def digit_files(tmp_path: Path) -> list[Path]:
    """Picture files of the first test digits."""
    images, _ = load_digits("digits", "test")
    paths = [tmp_path / f"digit{number}.png" for number in range(4)]
    for path, image in zip(paths, images, strict=False):
        Image.fromarray(image).resize((56, 56)).save(path)
    return paths


def test_minimal_tutorial_keeps_the_contract(tmp_path: Path) -> None:
    run_scenario_test(Minimal, directory=tmp_path)


@pytest.mark.parametrize("graph", ["CNN", "MLP"])
def test_full_tutorial_keeps_the_contract(tmp_path: Path, graph: str, digit_files: list[Path]) -> None:
    params = Full.default_trainer_params()
    if graph == "MLP":
        params.scenario.model.graph = MLP(nodes=[20, 10])
    run_scenario_test(Full, params, directory=tmp_path, predict_source=ImageFilesParams(image_files=digit_files))


def test_minimal_tutorial_is_short() -> None:
    lines = [line for file in (FOLDER / "min").glob("*.py") for line in file.read_text().splitlines() if line.strip()]
    assert len(lines) <= 80


def test_shift_moves_pictures_only_in_training() -> None:
    params = Full.default_trainer_params()
    data = Full(params.scenario).create_data()
    with params.gen.val_data(data).generate_input_samples() as samples:
        validated = next(samples)
    with params.gen.train_data(data, seed=1).generate_input_samples(auto_repeat=False) as samples:
        trained = [sample for _, sample in zip(range(20), samples, strict=False)]
    images, _ = load_digits("digits", "train")
    assert np.array_equal(validated.inputs["img"], load_digits("digits", "test")[0][0])
    moved = [sample for sample in trained if not np.array_equal(sample.inputs["img"], images[sample.index])]
    assert len(moved) > 10
