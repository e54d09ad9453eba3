"""Progressive resizing: small pictures first, the same after a resume, and refused where a network cannot take them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.data.sample import Batch, Cursor
from scena.errors import ModelError
from scena.scenario.classification.data import GrowingImages, scaled_down, stage_size
from scena.scenario.classification.scenario import ClassificationScenario


def small(directory: Path, **train: Any) -> Any:
    """A training of a small network on a few digits."""
    params = ClassificationScenario.default_trainer_params()
    network = params.scenario.model.network
    network.name, network.factor, network.depth, network.input_size = "ResNet20CIFAR", 8, [0.3], [16, 16, 3]
    params.output_dir, params.random_seed, params.epochs, params.export_best = directory, 1, 3, False
    params.gen.train = params.gen.train.replace(limit=24, batch_size=8, num_processes=0, **train)
    params.gen.val = params.gen.val.replace(limit=8, num_processes=0)
    return params


def note_sizes(trainer: Any) -> list[tuple[int, ...]]:
    """Height and width of the pictures of each step, as the engine gets them."""
    sizes: list[tuple[int, ...]] = []
    create = trainer.create_callbacks

    def with_engine(run: Any) -> Any:
        train = run.engine.train

        def noted(inputs: Any, targets: Any) -> Any:
            sizes.extend([inputs["image"].shape[2:4]] * len(inputs["image"]))
            return train(inputs, targets)

        run.engine.train = noted
        return create(run)

    trainer.create_callbacks = with_engine
    return sizes


def test_the_pictures_grow_by_stages(tmp_path: Path) -> None:
    trainer = ClassificationScenario.create_trainer(small(tmp_path / "run", sizes=[8, 12]))
    sizes = note_sizes(trainer)
    trainer.train()
    assert sizes == [(8, 8)] * 3 + [(12, 12)] * 3 + [(16, 16)] * 3
    lav = ClassificationScenario.create_lav(tmp_path / "run" / "export")
    pipeline = lav.create_pipeline(trainer.params.gen.val_gen())
    with pipeline.stream(repeat=False) as batches:
        assert next(batches).inputs["image"].shape[1:] == (16, 16, 3)


def test_a_resumed_run_has_the_weights_of_one_that_was_not_interrupted(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    ClassificationScenario.create_trainer(small(whole, sizes=[8])).train()
    first = small(parts, sizes=[8])
    first.epochs = 1
    ClassificationScenario.create_trainer(first).train()
    ClassificationScenario.create_trainer(small(parts, sizes=[8])).train(resume=True)
    weights = [ClassificationScenario.create_predictor(run / "export").built.root.weights for run in (whole, parts)]
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_every_pixel_counts_when_pictures_shrink() -> None:
    images = np.zeros((1, 8, 6, 1), "float32")
    images[0, 5, 3] = 8
    small = scaled_down(images, 4, 3)
    assert small.shape == (1, 4, 3, 1)
    assert small.mean() == pytest.approx(images.mean(), rel=0.1)
    plain = scaled_down(np.full((2, 9, 7, 3), 0.25, "float32"), 4, 5)
    np.testing.assert_allclose(plain, 0.25, rtol=1e-6)


def test_the_ratio_of_the_sides_stays() -> None:
    assert stage_size(64, (128, 96)) == (64, 48)
    growing = GrowingImages([4], stage_epochs=2)
    batch = Batch({"image": np.zeros((2, 8, 6, 3), "float32")}, {}, [], 2, Cursor(epoch=1, batch=1, samples=2))
    assert growing(batch).inputs["image"].shape == (2, 4, 3, 3)
    later = Batch(batch.inputs, {}, [], 2, Cursor(epoch=2, batch=1, samples=2))
    assert growing(later) is later


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("VGG16", [32], r"--train.sizes 32: VGG16 cannot take images of 32 × 32 beside those of 64 × 64"),
        ("ResNet18", [16], r"--train.sizes 16: ResNet18 takes images from 32 × 32 up to its input size, 64 × 64"),
        ("ResNet18", [96], r"--train.sizes 96: ResNet18 takes images from 32 × 32 up to its input size, 64 × 64"),
    ],
)
def test_sizes_that_a_network_cannot_take_are_refused(
    tmp_path: Path, name: str, sizes: list[int], message: str
) -> None:
    params = small(tmp_path / "run", sizes=sizes)
    network = params.scenario.model.network
    network.name, network.depth, network.input_size, network.factor = name, None, [64, 64, 3], 16
    with pytest.raises(ModelError, match=message):
        ClassificationScenario.create_trainer(params).train()
