"""Text recognition keeps the contract, reads a user's own files, and learns."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from examples.atr.evaluator import edit_distance
from examples.atr.params import Beam, LineFilesParams, RenderedParams
from examples.atr.rendering import make_text, render
from examples.atr.scenario import AtrScenario
from scena.data.errors import DataError
from scena.testing import run_scenario_test


@pytest.fixture
def line_files(tmp_path: Path) -> list[Path]:
    """Four pictures of lines, each with its text."""
    paths = [tmp_path / f"line{number}.png" for number in range(4)]
    for number, path in enumerate(paths):
        rng = np.random.default_rng(number)
        text = make_text(rng)
        Image.fromarray(render(text, RenderedParams(), rng)).save(path)
        path.with_suffix(".gt.txt").write_text(text + "\n")
    return paths


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_the_edit_distance_counts_single_edits(one: str, other: str, edits: int) -> None:
    assert edit_distance(one, other) == edit_distance(other, one) == edits


@pytest.mark.parametrize("decoder", ["greedy", "beam"])
def test_contract(tmp_path: Path, line_files: list[Path], decoder: str) -> None:
    params = AtrScenario.default_trainer_params()
    params.scenario.model.filters, params.scenario.model.lstm = [4, 8], 8
    if decoder == "beam":
        params.scenario.model.decoder = Beam(width=3)
    source = LineFilesParams(image_files=line_files)
    run_scenario_test(AtrScenario, params, directory=tmp_path / "run", predict_source=source, samples=8, tolerance=1e-4)


def test_lines_and_texts_of_a_users_own_work_too(line_files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "lines.lst").write_text("# mine\n" + "\n".join(map(str, line_files)))
    params = AtrScenario.default_trainer_params()
    params.gen.val_source = LineFilesParams(lists=[tmp_path / "lines.lst"])
    params.gen.val.num_processes = 0
    pipeline = params.gen.val_data(AtrScenario(params.scenario).create_data())
    with pipeline.generate_input_samples() as samples:
        texts = [len(sample.targets["text"]) for sample in samples]
    assert texts == [len(path.with_suffix(".gt.txt").read_text().strip()) for path in line_files]


def test_a_character_that_the_codec_lacks_is_named(line_files: list[Path]) -> None:
    line_files[0].with_suffix(".gt.txt").write_text("grüße")
    params = AtrScenario.default_trainer_params()
    params.gen.val_source = LineFilesParams(image_files=line_files)
    params.gen.val.num_processes = 0
    pipeline = params.gen.val_data(AtrScenario(params.scenario).create_data())
    with pipeline.generate_input_samples() as samples, pytest.raises(DataError, match="codec lacks: .*'ß', 'ü'"):
        next(samples)


@pytest.mark.long
def test_rendered_lines_are_read(tmp_path: Path) -> None:
    params = AtrScenario.default_trainer_params()
    params.output_dir, params.random_seed = tmp_path / "run", 1
    history = AtrScenario.create_trainer(params).train()
    assert min(row["lav_cer"] for row in history) < 0.05
