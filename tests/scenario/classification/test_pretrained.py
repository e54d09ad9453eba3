"""Transfer: first weights from files, and SavedModels as feature extractors; frozen, fine-tuned, exported and moved."""

import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from scena.commands.main import main
from scena.model.hub.inspect import trust_saved_models
from scena.model.zoo import create_network
from scena.scenario.classification.params import ImagePathsParams
from scena.scenario.classification.scenario import ClassificationScenario
from scena.testing import run_scenario_test

SIZE = [8, 8, 3]


def small(directory: Path, **network: Any) -> Any:
    """A short training on a few digits."""
    params = ClassificationScenario.default_trainer_params()
    for name, value in {"factor": 8, "depth": [0.3], "input_size": SIZE, **network}.items():
        setattr(params.scenario.model.network, name, value)
    params.scenario.data.image_shape = SIZE
    params.output_dir, params.random_seed, params.epochs = directory, 1, 1
    params.gen.train = params.gen.train.replace(limit=16, batch_size=8, num_processes=0)
    params.gen.val = params.gen.val.replace(limit=8, num_processes=0)
    return params


def weights_after(params: Any) -> dict[str, np.ndarray]:
    """The weights of the exported model, by their paths."""
    ClassificationScenario.create_trainer(params).train()
    built = ClassificationScenario.create_predictor(params.output_dir / "export").built
    return {weight.path: weight.numpy() for weight in built.root.weights}


@pytest.fixture
def extractor(tmp_path: Path) -> Path:
    """A SavedModel of Keras that makes features."""
    network = keras.Sequential(
        [keras.Input(SIZE), keras.layers.Conv2D(4, 3, name="conv"), keras.layers.BatchNormalization()]
    )
    network.export(tmp_path / "extractor", verbose=False)
    return tmp_path / "extractor"


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A picture file."""
    Image.fromarray(np.full((9, 9, 3), 90, np.uint8)).save(tmp_path / "picture.png")
    return tmp_path / "picture.png"


def test_first_weights_come_from_a_file_and_can_be_frozen(tmp_path: Path) -> None:
    before = create_network("ResNet20CIFAR", SIZE, 5, factor=8, depth=0.3)
    before.save(tmp_path / "before.keras")
    params = small(tmp_path / "run", weights=str(tmp_path / "before.keras"))
    params.no_train_scope = "ResNet20CIFAR/(?!classifier).*"
    after = weights_after(params)
    kernels = [value for path, value in after.items() if path.endswith("kernel")]
    assert after["ResNet20CIFAR/classifier/kernel"].shape[-1] == 10  # of the digits, not of the file
    stored = [weight for weight in before.weights if weight.name == "kernel"]
    for one, other in zip(kernels[:-1], stored[:-1], strict=True):
        np.testing.assert_array_equal(one, other)
    # the export needs the file no longer
    (tmp_path / "before.keras").unlink()
    ClassificationScenario.create_predictor(tmp_path / "run" / "export")


def test_a_saved_model_keeps_the_contract_and_travels_with_the_export(
    tmp_path: Path, extractor: Path, picture: Path
) -> None:
    params = small(tmp_path / "unused", name="hub", handle=str(extractor), factor=1, depth=None, dropout=0.1)
    source = ImagePathsParams(image_files=[picture])
    run_scenario_test(ClassificationScenario, params, directory=tmp_path, predict_source=source, tolerance=1e-4)
    export = tmp_path / "run" / "export"
    expected = next(iter(ClassificationScenario.create_predictor(export).predict(source))).outputs["pred"]
    shutil.rmtree(extractor)
    shutil.move(export, tmp_path / "elsewhere")
    moved = ClassificationScenario.create_predictor(tmp_path / "elsewhere")
    np.testing.assert_allclose(next(iter(moved.predict(source))).outputs["pred"], expected, rtol=1e-6)


def test_a_saved_model_is_fine_tuned_unless_it_is_frozen(tmp_path: Path, extractor: Path) -> None:
    first = {weight.path: weight.numpy() for weight in keras.layers.TFSMLayer(extractor).weights}
    kernel = next(value for value in first.values() if value.shape == (3, 3, 3, 4))
    changes = []
    for scope in (None, ".*/extractor"):
        params = small(tmp_path / f"run{scope is None}", name="hub", handle=str(extractor), factor=1, depth=None)
        params.no_train_scope = scope
        after = weights_after(params)
        (tuned,) = [value for path, value in after.items() if value.shape == (3, 3, 3, 4)]
        changes.append(float(np.abs(tuned - kernel).max()))
    assert changes[0] > 0 and changes[1] == 0


def test_trust_is_given_anew_by_whoever_loads_an_export(
    tmp_path: Path, picture: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Writing(tf.Module):
        """A model that leaves a file behind."""

        @tf.function(input_signature=[tf.TensorSpec([None, *SIZE], tf.float32)])
        def __call__(self, image: Any) -> Any:
            tf.io.write_file("left-behind", "x")
            return image[:, 0, 0]

    monkeypatch.chdir(tmp_path)
    tf.saved_model.save(Writing(), "writing")
    params = small(tmp_path / "run", name="hub", handle="writing", factor=1, depth=None)
    trust_saved_models()
    try:
        ClassificationScenario.create_trainer(params).train()
    finally:
        trust_saved_models(False)
    (tmp_path / "left-behind").unlink()
    words = ["predict", "run/export", "--data.image_files", str(picture)]
    assert main(words) == 1
    assert "It is loaded only with --trust" in capsys.readouterr().err
    assert not (tmp_path / "left-behind").exists()
    monkeypatch.setattr("scena.model.hub.inspect._trusted", [False])
    assert main([*words, "--trust"]) == 0
    assert "%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model.name", "hub"], "--model.name hub needs --model.handle"),
        (["--model.name", "hub", "--model.handle", "x", "--model.factor", "2"], "factor is for networks of the zoo"),
        (["--model.handle", "x"], "error: --model: handle belongs to --model.name hub"),
        (
            ["--model.input_size", "32", "32"],
            "error: --model: input_size takes height, width and channels. Received: [32, 32]",
        ),
        (["--model.input_size", "32", "32", "4"], "error: --model: input_size must have 1 or 3 channels."),
    ],
)
def test_flags_that_do_not_belong_together(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["params", "classification", *words]) == 2
    assert message in capsys.readouterr().err
