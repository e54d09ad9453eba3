"""Models of the toy scenario and of the tutorial, made once for all tests here."""

import shutil
from pathlib import Path

import pytest
from PIL import Image

from examples.tutorial.full.scenario import TutorialScenario
from scena import load_digits
from scena.commands.main import main
from tests.evaluation.exporting import export

CONVERTED = ["onnx", "openvino", "litert"]


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The export directories of two models with different weights."""
    folder = tmp_path_factory.mktemp("exports")
    return [export(folder / f"model{seed}", seed) for seed in (1, 2)]


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two converted models of the tutorial, and some images."""
    folder = tmp_path_factory.mktemp("digits")
    for seed in (1, 2):
        export(folder / f"model{seed}", seed, TutorialScenario)
        formats = CONVERTED if seed == 1 else ["onnx"]
        assert main(["export", str(folder / f"model{seed}"), "--format", *formats]) == 0
    for number, image in enumerate(load_digits("digits", "test")[0][:3]):
        Image.fromarray(image).save(folder / f"digit{number}.png")
    return folder


@pytest.fixture
def model(digits: Path, tmp_path: Path) -> Path:
    """A converted model that a test may spoil."""
    shutil.copytree(digits / "model1", tmp_path / "model")
    return tmp_path / "model"
