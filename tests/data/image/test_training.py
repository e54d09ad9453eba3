"""From a folder of images to a trained model, by the command line: records, augmentation flags, both engines."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scena.commands.main import main

SCENARIO = "tests.data.image.picture_scenario"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bright discs and dark squares on noise."""
    root = tmp_path_factory.mktemp("shapes")
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:32, :40]
    for number in range(120):
        row, column = rng.integers(10, 22, 2)
        image = rng.integers(90, 160, (32, 40, 3))
        if number % 2:
            image[(y - row) ** 2 + (x - column) ** 2 < 49] = (250, 220, 60)
        else:
            image[row - 6 : row + 6, column - 6 : column + 6] = (20, 20, 90)
        path = root / "images" / ("disc" if number % 2 else "square") / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.astype(np.uint8)).save(path, quality=95)
    assert main(f"records write --images {root}/images --output {root} --name shapes".split()) == 0
    return root / "shapes"


@pytest.mark.parametrize("engine", ["python", "tf.data"])
def test_a_model_learns_from_records(records: Path, engine: str, tmp_path: Path) -> None:
    arguments = f"""train {SCENARIO} --data ImageRecords --data.records {records} --data.image_shape 24 24 3
        --model.n_classes 2 --train.engine {engine} --val.engine {engine} --train.batch_size 16 --trainer.epochs 6
        --train.augment RandomCropThenResize RandomHorizontalFlip --train.augment.RandomCropThenResize.size 24 24
        --train.augment.RandomCropThenResize.scale 0.7 1.0 --trainer.random_seed 1 --trainer.output_dir {tmp_path / "run"}"""
    assert main(arguments.split()) == 0
    rows = (tmp_path / "run" / "history.csv").read_text().splitlines()
    last = dict(zip(rows[0].split(","), rows[-1].split(","), strict=True))
    assert float(last["val_acc"]) >= 0.9
    stored = json.loads((tmp_path / "run" / "trainer_params.json").read_text())
    assert "RandomCropThenResize" in json.dumps(stored)
