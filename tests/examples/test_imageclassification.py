"""Image classification keeps the contract, and takes folders of any kind. How well it learns: test_readmes.py."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from examples.imageclassification.draw import FLOWERS, draw_flower, write_flowers
from examples.imageclassification.scenario import FlowersScenario
from scena.data.sources.params import ImageFilesParams
from scena.scenario.classification.params import ImagePathsParams
from scena.storage.location import Location
from scena.testing import run_scenario_test


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    """A folder with a few pictures of each class."""
    write_flowers(tmp_path / "flowers", 8)
    return tmp_path / "flowers"


def test_pictures_depend_on_the_seed_only() -> None:
    one, again, other = (np.asarray(draw_flower("rose", np.random.default_rng(seed))) for seed in (1, 1, 2))
    assert np.array_equal(one, again) and not np.array_equal(one, other)


def test_contract(tmp_path: Path, flowers: Path) -> None:
    params = FlowersScenario.default_trainer_params()
    params.gen.source = ImageFilesParams(images=Location(str(flowers)))
    params.scenario.data.image_shape = [16, 16, 3]
    params.scenario.model.filters, params.scenario.model.dense = [4, 4], [8, 8]
    files = sorted((flowers / "validation" / "tulip").iterdir())
    source = ImagePathsParams(image_files=files)
    run_scenario_test(FlowersScenario, params, directory=tmp_path, predict_source=source, tolerance=1e-4)
    predictor = FlowersScenario.create_predictor(tmp_path / "run" / "export")
    printed: list[str] = []
    for sample in predictor.predict(source):
        predictor.print_prediction(sample, printed.append)
    assert printed[0].startswith(f"{files[0]}: most likely ") and printed[0].split()[3] in FLOWERS
    assert " with " in printed[0] and printed[0].endswith("%")


def test_a_folder_of_your_own_needs_no_splits(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "own" / name).mkdir(parents=True)
        for number in range(10):
            Image.fromarray(np.full((20 + number, 30, 3), 20 * number, np.uint8)).save(
                tmp_path / "own" / name / f"{number}.png"
            )
    params = FlowersScenario.default_trainer_params()
    params.gen.source = ImageFilesParams(images=Location(str(tmp_path / "own")))
    params.gen.train.num_processes = params.gen.val.num_processes = 0
    data = FlowersScenario.create_trainer(params).scenario.create_data()
    assert data.params.class_names == ["cat", "dog"]
    counts = []
    for pipeline in (params.gen.train_data(data), params.gen.val_data(data)):
        with pipeline.generate_input_samples(auto_repeat=False) as samples:
            shapes = [sample.inputs["image"].shape for sample in samples]
        counts.append(len(shapes))
        assert set(shapes) == {(64, 64, 3)}
    assert counts == [18, 2]
