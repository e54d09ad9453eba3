"""Image classification, ready to use: contract, classes from the data, mixing, and learning."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from PIL import Image

from examples.imageclassification.draw import draw_flower
from scena import PredictorParams, Sample
from scena.commands.main import main
from scena.data.image.params import ImagePipelineParams, NormalizeParams, RandomHorizontalFlipParams
from scena.data.sources.digits import load_digits
from scena.data.sources.params import ImageArraysParams, ImageFilesParams
from scena.errors import ScenarioError
from scena.params import parse, root_of
from scena.scenario.classification.model import ClassificationGraph, Mixing, create_network
from scena.scenario.classification.params import (
    ClassificationModelParams,
    ClassificationNetworkParams,
    ImagePathsParams,
    MixParams,
)
from scena.scenario.classification.scenario import ClassificationScenario
from scena.scenario.finding import find_scenario
from scena.testing import run_scenario_test
from scena.training.schedules.params import CosineDecay
from tests.evaluation.exporting import export


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder with a folder of red and one of blue pictures."""
    rng = np.random.default_rng(0)
    for place, name in enumerate(("blue", "red")):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(12):
            image = rng.integers(0, 80, (20, 24, 3), dtype=np.uint8)
            image[..., 2 if place == 0 else 0] += 150
            Image.fromarray(image).save(tmp_path / "pictures" / name / f"{number}.png")
    return tmp_path / "pictures"


def small(**changes: Any) -> Any:
    """Trainer parameters of a small network."""
    params = ClassificationScenario.default_trainer_params()
    params.scenario.model.network.name = "ResNet20CIFAR"
    params.scenario.model.network.factor = 8
    params.scenario.model.network.depth = [0.3]
    for name, value in changes.items():
        setattr(params.scenario.model.network, name, value)
    return params


def test_it_has_a_short_name() -> None:
    assert find_scenario("classification") is ClassificationScenario


def test_contract_on_a_folder_of_pictures(tmp_path: Path, pictures: Path) -> None:
    params = small()
    params.gen.source = ImageFilesParams(images=pictures)
    params.scenario.model.mix.mixup = 0.3
    files = sorted((pictures / "red").iterdir())[:3]
    source = ImagePathsParams(image_files=files)
    run_scenario_test(ClassificationScenario, params, directory=tmp_path, predict_source=source, tolerance=1e-4)
    predictor = ClassificationScenario.create_predictor(tmp_path / "run" / "export")
    assert predictor.data.params.class_names == ["blue", "red"]
    lav = ClassificationScenario.create_lav(tmp_path / "run" / "export")
    assert lav.evaluator.class_names() == ["blue", "red"]  # the confusion matrix of a report shows them
    printed: list[str] = []
    for sample in predictor.predict(source):
        predictor.print_prediction(sample, printed.append)
    assert printed[0].startswith(f"{files[0]}: ") and "red" in printed[0] and "%" in printed[0]
    # Python, LAV and the service normalize images as the training did
    (first, *_) = predictor.predict(source)
    served = predictor.predict_sample(predictor.sample_from_file(files[0].read_bytes(), "a.png"))
    assert np.array_equal(first.outputs["logits"], served.outputs["logits"])
    images = [np.asarray(Image.open(file)) for file in files]
    (raw, *_) = predictor.predict_raw([Sample({"image": image}) for image in images])
    assert np.array_equal(first.outputs["logits"], raw.outputs["logits"])
    batches = params.gen.val.replace(split=None)
    checked = ClassificationScenario.create_predictor(tmp_path / "run" / "export", PredictorParams(pipeline=batches))
    assert np.array_equal(next(iter(checked.predict(source))).outputs["logits"], first.outputs["logits"])
    plain = params.gen.val.replace(split=None, augment=[])
    other = ClassificationScenario.create_predictor(tmp_path / "run" / "export", PredictorParams(pipeline=plain))
    assert not np.allclose(next(iter(other.predict(source))).outputs["logits"], first.outputs["logits"])
    names = ["--data.image_files", *map(str, files), "--out", str(tmp_path / "answers.csv")]
    assert main(["predict", str(tmp_path / "run" / "export"), *names]) == 0
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    likely = ["blue" if float(row["pred.blue"]) > float(row["pred.red"]) else "red" for row in rows]
    assert [row["class"] for row in rows] == likely and rows[0]["meta.name"] == str(files[0])


def test_models_that_normalize_differently_do_not_share_batches(
    tmp_path: Path, pictures: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths, found = [], []
    for name, operation in (("a", NormalizeParams()), ("b", NormalizeParams(mean=[0, 0, 0], std=[0.1, 0.1, 0.1]))):
        params = small(num_classes=2)
        params.scenario.data.image_shape, params.scenario.data.class_names = [32, 32, 3], ["blue", "red"]
        params.gen.source, params.gen.val.augment = ImageFilesParams(images=pictures), [operation]
        paths.append(str(export(tmp_path / name, 1, ClassificationScenario, params)))

    def losses(*models: str) -> list[float]:
        assert main(["lav", *models, "--json", str(tmp_path / "results.json")]) == 0
        return [results["loss"] for results in json.loads((tmp_path / "results.json").read_text()).values()]

    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "red").symlink_to(pictures / "red")  # a test set without one of the classes
    seen: list[int] = []
    lav = ClassificationScenario.create_lav(paths[0])
    lav.run(
        ImageFilesParams(images=tmp_path / "few", split="all"), observer=lambda s: seen.append(int(s.targets["label"]))
    )
    assert seen == [1] * 12

    found = [losses(path)[0] for path in paths]
    assert found[0] != found[1] and losses(*paths) == found  # the weights are the same
    assert main(["compare", *paths, "--json", str(tmp_path / "compared.json")]) == 0
    compared = json.loads((tmp_path / "compared.json").read_text())["results"]["loss"]
    assert [compared["a"], compared["b"]] == pytest.approx(found, rel=1e-5)
    with pytest.raises(ScenarioError, match=r"prepare their inputs differently \(--val.augment of the two runs\)"):
        ClassificationScenario.create_predictor(paths)
    caplog.clear()
    ClassificationScenario.create_predictor(paths[0], PredictorParams(pipeline=ImagePipelineParams(batch_size=2)))
    assert "than the run's validation did: augment is [], and it was [NormalizeParams()]" in caplog.text


def test_batch_normalization_averages_over_an_epoch(pictures: Path) -> None:
    params = small(name="ResNet18", depth=None)
    params.gen.source = ImageFilesParams(images=pictures)
    ClassificationScenario.create_trainer(params)
    network = params.scenario.model.network
    assert network.max_momentum == 0.9  # 22 images are two steps; it averages over ten at least
    layers = create_network(network).layers
    assert {layer.momentum for layer in layers if isinstance(layer, keras.layers.BatchNormalization)} == {0.9}
    params = small()
    params.gen.source, params.gen.train.batch_size = ImageFilesParams(images=pictures), 1
    ClassificationScenario.create_trainer(params)
    assert params.scenario.model.network.max_momentum == 1 - 1 / 22


@pytest.mark.long
def test_a_small_folder_gives_a_useful_model(tmp_path: Path) -> None:
    """The command of the README on 30 images of each class; drawn, as nothing can be downloaded."""
    for folder, count in (("fruit", 30), ("new", 100)):
        for place, name in enumerate(("daisy", "rose", "tulip")):
            (tmp_path / folder / name).mkdir(parents=True)
            for number in range(count):
                rng = np.random.default_rng([count, place, number])
                draw_flower(name, rng).save(tmp_path / folder / name / f"{number}.jpg", quality=90)
    readme = (Path(__file__).parents[3] / "README.md").read_text().replace("\\\n", "")
    (command,) = (line for line in readme.splitlines() if line.startswith("$ scena train classification"))
    words = command.replace(" fruit ", f" {tmp_path}/fruit ").replace("fruit_run", f"{tmp_path}/run").split()[2:]
    assert main([*words, "--trainer.random_seed", "1"]) == 0
    data = ["--data", "ImageFiles", "--data.images", f"{tmp_path}/new", "--data.split", "train"]
    assert main(["lav", f"{tmp_path}/run/best", *data, "--json", f"{tmp_path}/lav.json"]) == 0
    (results,) = json.loads((tmp_path / "lav.json").read_text()).values()
    assert results["acc"] >= 0.8


def test_it_trains_on_arrays_of_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    import h5py

    images, labels = load_digits("digits", "train")
    with h5py.File(tmp_path / "digits.h5", "w") as file:
        file["images"], file["labels"] = images[:64], labels[:64]
    params = small()
    params.gen.source = ImageArraysParams(images=f"{tmp_path}/digits.h5:images", labels=f"{tmp_path}/digits.h5:labels")
    params.output_dir, params.epochs = tmp_path / "run", 1
    params.export_best = params.export_final = False
    params.gen.train.augment = [RandomHorizontalFlipParams()]
    history = ClassificationScenario.create_trainer(params).train()
    assert len(history) == 1 and params.scenario.model.network.num_classes == 10
    assert "--train.augment has no Normalize, and --val.augment NormalizeParams(). Give both the same" in caplog.text


def test_classes_of_a_stored_run_keep_their_numbers(pictures: Path, caplog: pytest.LogCaptureFixture) -> None:
    params = small(num_classes=3)
    params.gen.source, data = ImageFilesParams(images=pictures), params.scenario.data
    for stored, expected in ((["blue", "green", "red"], ["blue", "green", "red"]), (["Blue", "red"], ["blue", "red"])):
        data.class_names = stored
        ClassificationScenario.create_trainer(params)
        assert data.class_names == expected
    assert "has the classes blue, red, and the parameters were stored for Blue, red; labels are" in caplog.text


def test_classes_are_those_of_the_data_set() -> None:
    params = small()
    ClassificationScenario.create_trainer(params)
    assert params.scenario.model.network.num_classes == 10
    with pytest.raises(ScenarioError, match="has 10 classes; --model.num_classes 3 is less than that"):
        ClassificationScenario.create_trainer(small(num_classes=3))


def test_a_network_that_has_a_map_beside_its_logits() -> None:
    network = ClassificationNetworkParams(name="DeepPixBiS", num_classes=3, factor=16)
    graph = ClassificationGraph(ClassificationModelParams(network=network))
    outputs = graph.build_prediction_graph({"image": np.zeros((2, 32, 32, 3), "float32")})
    assert {name: tuple(value.shape) for name, value in outputs.items()} == {
        "logits": (2, 3),
        "pred": (2, 3),
        "class": (2,),
    }


def test_the_command_of_the_document_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        "params classification --model.name MobileNetV2 --model.num_classes 10 --model.input_size 32 32 3 --data.dataset cifar10 "
        "--train.augment RandomHorizontalFlip Normalize --val.augment Normalize --train.batch_size 64 --learning_rate.lr 0.0001 "
        "--trainer.epochs 20 --trainer.output_dir DIR"
    )
    assert main(command.split()) == 0
    shown = capsys.readouterr().out
    for line in (
        "name: MobileNetV2",
        "num_classes: 10",
        "dataset: cifar10",
        "batch_size: 64",
        "lr: 0.0001",
        "epochs: 20",
    ):
        assert line in shown


def test_the_file_of_the_document_says_the_same_as_the_command(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "classification.md").read_text()
    (tmp_path / "config.yml").write_text(page.partition("```yaml\n")[2].partition("```")[0])
    before_the_file = page.partition("```yaml\n")[0].replace("\\\n", " ")
    command = before_the_file.rpartition("$ scena train classification ")[2].partition("\n")[0]
    root = root_of(trainer=ClassificationScenario.default_trainer_params())
    from_flags = parse(root, command.split()).params.trainer
    from_file = parse(root, ["--config", str(tmp_path / "config.yml")]).params.trainer
    assert from_file == from_flags and from_file.scenario.model.network.name == "MobileNetV2"


def test_help_needs_no_heavy_package() -> None:
    code = (
        "import sys\nfrom scena.commands.main import main\n"
        "try:\n    main(['train', 'classification', '--help'])\nexcept SystemExit:\n    pass\n"
        "print('LOADED', [n for n in ('keras', 'tensorflow', 'numpy', 'pandas') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("LOADED []")


@pytest.mark.parametrize("way", ["mixup", "cutmix"])
def test_mixed_pictures_consist_of_the_shares_they_say(way: str) -> None:
    keras.utils.set_random_seed(1)
    layer = Mixing(MixParams(**{way: 1.0}))
    labels = np.arange(6)
    image = np.broadcast_to(labels.astype("float32")[:, None, None, None], (6, 16, 16, 3))
    mixed, other, share = (np.asarray(value) for value in layer(image, labels))
    assert set(other) == set(labels) and not np.any(other == labels)
    expected = share * labels + (1 - share) * other
    assert mixed.mean(axis=(1, 2, 3)) == pytest.approx(expected, abs=1e-5)
    assert share.std() > 0.1


def test_wrong_class_weights_are_refused(tmp_path: Path) -> None:
    params = small()
    params.scenario.model.class_weights = [1.0, 2.0]
    params.output_dir = tmp_path / "run"
    with pytest.raises(
        RuntimeError, match="--model.class_weights needs one number for each of 10 classes. Received: 2"
    ):
        ClassificationScenario.create_trainer(params).train()


@pytest.mark.long
@pytest.mark.parametrize("framework", ["tensorflow", "upstride_type1", "upstride_type2", "upstride_type3"])
def test_digits_are_learned_in_each_algebra(tmp_path: Path, framework: str) -> None:
    params = small(factor=4, framework=framework, input_size=[14, 14, 3])
    params.epochs, params.output_dir, params.random_seed = 7 if framework == "tensorflow" else 4, tmp_path / "run", 1
    params.gen.train.batch_size, params.learning_rate = 32, CosineDecay(lr=0.003)
    history = ClassificationScenario.create_trainer(params).train()
    assert max(row["val_acc"] for row in history) >= (0.95 if framework == "tensorflow" else 0.93)
