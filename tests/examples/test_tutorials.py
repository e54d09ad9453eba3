"""The tutorials keep Scena's contract, and learn."""

import ast
import io
import tokenize
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


@pytest.mark.parametrize(("name", "most"), [("min", 50), ("full", 180)])
def test_tutorials_stay_short(name: str, most: int) -> None:
    """Lines of code, without blank lines, comments and docstrings."""
    assert sum(code_lines(file) for file in (FOLDER / name).glob("*.py")) <= most


def code_lines(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in layout]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


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
