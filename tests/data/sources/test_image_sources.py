"""Data sets by name, image files, image records and HDF5 arrays as sources, with their splits."""

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.data import DataError, PipelineMode
from scena.data.image.database import ImageData
from scena.data.image.params import ImageDataParams, WriteImagesParams
from scena.data.image.writer import write_images
from scena.data.sources import named
from scena.data.sources.params import (
    ArrayGeneratorParams,
    ImageArraysParams,
    ImageFilesParams,
    ImageRecordsParams,
    NamedDataSetParams,
    try_source,
)
from scena.data.sources.splits import Splits, _told, label_numbers
from scena.training.pipelines import ImagePipelines
from tests.data.image.pictures import class_folders, picture

TRAINING, EVALUATION = PipelineMode.TRAINING, PipelineMode.EVALUATION


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    """What other tests of this process have logged is logged again."""
    _told.clear()


COUNTS = {"train": 200, "test": 30}


def places(split: str | None, mode: PipelineMode = TRAINING, counts: dict[str, int] = COUNTS, seed: int = 0,
           sides: tuple[str, str] | None = None) -> Any:  # fmt: skip
    return [(name, part.tolist()) for name, part in Splits(counts, seed, "The data set").choose(split, mode, sides)]


def sides(train: str | None, validation: str | None, counts: dict[str, int] = COUNTS) -> Any:
    """What a training reads, and what its validation does, as sets of (split, place)."""
    both = (train or "", validation or "")
    parts = places(train, TRAINING, counts, sides=both), places(validation, EVALUATION, counts, sides=both)
    return [{(name, place) for name, members in side for place in members} for side in parts]


def test_split_expressions() -> None:
    assert places("train") == [("train", list(range(200)))]
    assert places("train[:10%]+test[25:]") == [("train", list(range(20))), ("test", list(range(25, 30)))]
    assert places("train[-5:]") == [("train", list(range(195, 200)))]
    assert places("train[33%:34%]") == [("train", [66, 67])]
    for text in ("train[", "train[a:b]", "[:3]", ""):
        with pytest.raises(DataError, match="A split is written as"):
            places(text)
    with pytest.raises(DataError, match="has no split 'dev'; it has train, test"):
        places("dev")


def test_a_seeded_tenth_is_kept_for_validation(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "scena.data"):
        ((_, validation),) = places(None, EVALUATION)
    assert (
        "no validation split: 20 of the 200 samples of train are kept for validation (seed 0) and not trained on"
        in caplog.text
    )
    ((_, train),) = places(None, TRAINING)
    assert sorted(train + validation) == list(range(200))
    assert len(validation) == 20
    assert places(None, EVALUATION, seed=1) != [("train", validation)]
    both = {"train": 10, "validation": 5}
    assert places(None, TRAINING, both) == [("train", list(range(10)))]
    assert places(None, EVALUATION, both) == [("validation", list(range(5)))]


@pytest.mark.parametrize(
    "train", [None, "train", "training", "train[:50%]", "train[:95%]", "train+test", "test[:10]+train"]
)
@pytest.mark.parametrize("validation", [None, "validation", "val"])
def test_automatic_validation_is_never_trained_on(train: str | None, validation: str | None) -> None:
    trained, validated = sides(train, validation)
    assert not trained & validated
    assert len(validated) == (10 if train == "train[:95%]" else 20)
    if train == "train[:50%]":
        assert len(trained) == 100  # a slice is read as it was written


def test_what_the_other_side_names_is_left_to_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "scena.data")
    trained, validated = sides(None, "test")
    assert (len(trained), len(validated)) == (200, 30)  # nothing is kept back for nobody
    trained, validated = sides(None, "train[:10%]")
    assert (len(trained), len(validated)) == (180, 20) and not trained & validated
    assert "trained on" not in caplog.text
    trained, validated = sides("train", "train[:10%]")
    assert len(trained & validated) == 20
    assert "The data set: 20 of the 20 validation samples are trained on." in caplog.text


def test_a_model_may_be_validated_on_any_split(caplog: pytest.LogCaptureFixture) -> None:
    assert len(places("train", EVALUATION, sides=("", ""))[0][1]) == 200
    assert "180 of the 200 validation samples are trained on." in caplog.text
    caplog.clear()
    assert len(places("test", EVALUATION, sides=("train[:50%]", "train[50%:]"))[0][1]) == 30
    assert "trained on" not in caplog.text
    assert places(None, EVALUATION, {"validation": 3, "test": 4}) == [("validation", [0, 1, 2])]


def test_a_training_that_leaves_nothing_to_validate_on_is_refused() -> None:
    for train, counts in (("train[:]", COUNTS), ("train+validation", {"train": 9, "validation": 3})):
        with pytest.raises(
            DataError, match=r"the training reads all of \w+, and nothing is left to validate on. Name a split"
        ):
            sides(train, None, counts)
    with pytest.raises(DataError, match="the validation reads all of train .* nothing is left to train on"):
        sides(None, "train")


def test_other_data_than_the_training_s_is_validated_on_as_a_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "scena.data")
    folders = [class_folders(tmp_path / name, {"a": 10, "b": 10}) for name in ("mine", "other")]
    mine, other = (ImageFilesParams(images=folder) for folder in folders)

    def count(source: ImageFilesParams, validated: ImageFilesParams) -> int:
        return len(source.beside(validated).create(EVALUATION))

    for validated in (mine.for_validation(), mine):  # one source for both sides, or two
        assert count(validated, validated) == 2
        assert count(mine, validated) == 2
        assert "not the data set of the training" not in caplog.text
        assert count(validated.replace(images=other.images), validated) == 20
        assert count(other, validated) == 20  # --data ImageFiles --data.images other
        assert "other is not the data set of the training: all its 20 samples are used." in caplog.text
        caplog.clear()
        _told.clear()
    assert count(mine.replace(split_seed=3), mine.for_validation()) == 2
    assert count(other.replace(split="train[:5]"), mine.for_validation()) == 5


def test_sets_with_one_split() -> None:
    assert places(None, EVALUATION, {"test": 7}) == [("test", list(range(7)))]
    assert places(None, PipelineMode.PREDICTION, {"test": 7}, sides=("train", "")) == [("test", list(range(7)))]
    with pytest.raises(DataError, match="none of which is for training"):
        places(None, TRAINING, {"test": 7})
    assert len(places(None, TRAINING, {"data": 50})[0][1]) == 45


def test_a_few_samples_are_divided_and_a_single_one_is_trained_on() -> None:
    for count in (2, 3, 10, 19):
        trained, validated = sides(None, None, {"data": count})
        assert (len(trained), len(validated)) == (count - 1, 1)
    assert places(None, TRAINING, {"data": 1}) == [("data", [0])]


def test_the_tenth_and_a_limit_hold_each_class(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 30, "rose": 20, "tulip": 10})
    validation = ImageFilesParams(images=root).create(EVALUATION)
    assert Counter(validation.strata()) == {0: 3, 1: 2, 2: 1}
    pipelines = ImagePipelines(source=ImageFilesParams(images=root))
    pipelines.train.limit, pipelines.val.limit = 12, 3
    data = ImageData(ImageDataParams(image_shape=[8, 8, 3]))
    for pipeline, expected in ((pipelines.train_data(data, seed=5), [6, 4, 2]), (pipelines.val_data(data), [2, 1, 0])):
        with pipeline.stream(repeat=False) as batches:
            labels = [int(label) for batch in batches for label in batch.targets["label"]]
        assert np.abs(np.bincount(labels, minlength=3) - expected).max() <= 1 and len(labels) == sum(expected)


def test_a_source_is_tried_in_silence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A command opens it once more, and the notice about its splits would stand there twice."""
    source = ImageFilesParams(images=class_folders(tmp_path / "flowers", {"daisy": 12, "rose": 12}))
    caplog.set_level("INFO", "scena.data")
    try_source(source, EVALUATION)
    assert not caplog.records
    source.create(EVALUATION)
    source.create(EVALUATION)
    assert caplog.text.count("flowers has no validation split: 2 of its 24 samples are kept for validation") == 1


def test_a_training_with_a_named_split_validates_on_other_samples(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 30, "rose": 30})
    for split in ("train", "all", "all[:50%]"):
        for field in ("train", "source"):
            pipelines = ImagePipelines(source=ImageFilesParams(images=root))
            getattr(pipelines, field).split = split
            train, validation = pipelines.train_gen().create(TRAINING), pipelines.val_gen().create(EVALUATION)
            names = [{source[i].meta["name"] for i in range(len(source))} for source in (train, validation)]
            assert names[0] and names[1] and not names[0] & names[1]


def test_image_files_in_class_folders(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 20, "rose": 10})
    train = ImageFilesParams(images=root).create(TRAINING)
    validation = ImageFilesParams(images=root).create(EVALUATION)
    assert (len(train), len(validation), train.classes) == (27, 3, ["daisy", "rose"])
    sample = train[26]
    assert sample.inputs["image"] == (root / sample.meta["name"]).read_bytes()
    assert train.classes[sample.targets["label"]] == Path(sample.meta["name"]).parent.name
    names = {source[i].meta["name"] for source in (train, validation) for i in range(len(source))}
    assert len(names) == 30


def test_image_files_with_folders_for_splits(tmp_path: Path) -> None:
    class_folders(tmp_path / "set" / "train", {"daisy": 6, "rose": 4})
    class_folders(tmp_path / "set" / "val", {"daisy": 2, "rose": 1})
    params = ImageFilesParams(images=tmp_path / "set")
    assert [len(params.create(mode)) for mode in (TRAINING, EVALUATION)] == [10, 3]
    assert len(params.replace(split="train[:50%]").create(EVALUATION)) == 5
    class_folders(tmp_path / "set" / "test", {"tulip": 1})
    with pytest.raises(DataError, match="have different classes"):
        params.create(TRAINING)


def test_image_records(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 20, "rose": 20})
    write_images(WriteImagesParams(output=tmp_path, name="set", images=root))
    params = ImageRecordsParams(records=tmp_path / "set")
    train, validation = params.create(TRAINING), params.create(EVALUATION)
    assert (len(train), len(validation), train.classes) == (32, 4, ["daisy", "rose"])
    assert train[3].inputs["image"] == (root / train[3].meta["name"]).read_bytes()
    assert len(params.replace(split="train+test").create(EVALUATION)) == 36
    with pytest.raises(DataError, match="have no feature 'gt'"):
        params.replace(label_key="gt").create(TRAINING)


def test_hdf5_arrays(tmp_path: Path) -> None:
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["group/y"] = np.arange(12).reshape(4, 3), np.arange(4)
    path = tmp_path / "a.h5"
    source = ArrayGeneratorParams(inputs={"x": f"{path}:x"}, targets={"y": f"{path}:group/y"}).create(TRAINING)
    assert len(source) == 4
    assert source[2].inputs["x"].tolist() == [6, 7, 8]
    assert source[2].targets["y"] == 2
    assert len(ArrayGeneratorParams(inputs={"x": str(path)}).create(TRAINING)) == 4
    with pytest.raises(DataError, match=r"name one of its arrays as a.h5:array. It has \['x'\]"):
        ArrayGeneratorParams(inputs={"x": f"{path}:z"}).create(TRAINING)


def test_hdf5_arrays_of_other_files_are_refused(tmp_path: Path) -> None:
    """A file must not choose which other files of this machine are read."""
    import h5py

    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["x"] = np.arange(4)
    (tmp_path / "raw").write_bytes(bytes(16))
    layout = h5py.VirtualLayout(shape=(4,), dtype="int64")
    layout[:] = h5py.VirtualSource(str(tmp_path / "secret.h5"), "x", shape=(4,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["own"] = np.arange(4)
        file["soft"] = h5py.SoftLink("/own")
        file["link"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "x")
        file["group"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/")
        file["by_link"] = h5py.SoftLink("/link")
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", (4,), dtype="int32", external=str(tmp_path / "raw"))
    for name in ("link", "group/x", "by_link", "virtual", "external"):
        with pytest.raises(DataError, match="is a link to another file, or its data is in another file"):
            ArrayGeneratorParams(inputs={"x": f"{tmp_path}/a.h5:{name}"}).create(TRAINING)
    for name in ("own", "soft"):
        assert len(ArrayGeneratorParams(inputs={"x": f"{tmp_path}/a.h5:{name}"}).create(TRAINING)) == 4


def test_images_of_arrays_have_splits_and_classes(tmp_path: Path) -> None:
    images, labels = np.arange(20 * 4 * 4, dtype=np.uint8).reshape(20, 4, 4), np.arange(20) % 3
    np.savez(tmp_path / "a.npz", images=images, labels=labels[:, None], few=labels[:5], real=labels / 2)
    params = ImageArraysParams(images=f"{tmp_path}/a.npz:images", labels=f"{tmp_path}/a.npz:labels")
    train, validation = params.create(TRAINING), params.create(EVALUATION)
    assert (len(train), len(validation), train.classes) == (18, 2, ["0", "1", "2"])
    everything = params.replace(split="all").create(EVALUATION)
    np.testing.assert_array_equal(everything[7].inputs["image"], images[7][..., None])
    assert everything[7].targets["label"] == 1
    with pytest.raises(DataError, match=r"has 20 images, .*a.npz:few 5 labels"):
        params.replace(labels=f"{tmp_path}/a.npz:few").create(TRAINING)
    with pytest.raises(DataError, match=r"one whole number from 0 .* Received: float64 of shape \(20,\)"):
        params.replace(labels=f"{tmp_path}/a.npz:real").create(TRAINING)
    with pytest.raises(DataError, match=r"axes samples, height, width.*, not \(20,\)"):
        params.replace(images=f"{tmp_path}/a.npz:real").create(TRAINING)


def test_a_cache_knows_when_files_of_images_change(tmp_path: Path) -> None:
    folder = class_folders(tmp_path / "flowers", {"rose": 3, "daisy": 2})
    write_images(WriteImagesParams(images=folder, output=tmp_path / "out", name="set"))
    np.savez(tmp_path / "a.npz", images=np.zeros((5, 4, 4), np.uint8), labels=np.arange(5))
    sources: list[Any] = [
        ImageFilesParams(images=folder, split="all"),
        ImageRecordsParams(records=tmp_path / "out" / "set", split="train"),
        ImageArraysParams(images=f"{tmp_path}/a.npz:images", labels=f"{tmp_path}/a.npz:labels", split="all"),
    ]
    files = [folder / "rose" / "rose_000.jpg", next(tmp_path.rglob("set/train*.tfrecord")), tmp_path / "a.npz"]
    for params, file in zip(sources, files, strict=True):
        before = params.create(TRAINING).fingerprint()
        assert params.create(TRAINING).fingerprint() == before
        os.utime(file, (1, 1))
        assert params.create(TRAINING).fingerprint() != before, file
    files[0].unlink()
    assert len(sources[0].create(TRAINING).fingerprint()) == 4


def test_labels_go_by_the_names_of_the_classes_of_a_model(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "scena.data")
    root = class_folders(tmp_path / "test", {"rose": 3, "tulip": 2})
    write_images(WriteImagesParams(output=tmp_path, name="set", images=root))
    files, records = ImageFilesParams(images=root, split="all"), ImageRecordsParams(records=tmp_path / "set")

    def labels(source: Any, *known: str) -> list[int]:
        opened = source.replace(model_classes=list(known)).create(TRAINING)
        return sorted(int(opened[index].targets["label"]) for index in range(len(opened)))

    assert labels(files, "daisy", "rose", "tulip") == [1, 1, 1, 2, 2]
    assert set(labels(records, "tulip", "daisy", "rose")) == {0, 2}
    assert "test has 2 of the 3 classes of the model, or another order: labels go by name." in caplog.text
    assert labels(files, "rose", "tulip") == labels(files) == labels(files, "0", "1", "2") == [0, 0, 0, 1, 1]
    with pytest.raises(
        DataError, match=r"test has the class 'tulip', which the model was not trained on. It has rose, tulip;"
    ):
        labels(files, "daisy", "rose")
    assert labels(files, "Rosen", "Tulpen") == [0, 0, 0, 1, 1]
    assert "no class of the model's names: rose, tulip are taken for Rosen, Tulpen" in caplog.text
    with pytest.raises(DataError, match="It has a, b, c, d, e, f, …; the model knows b, c, d, e, f, g.$"):
        label_numbers(list("abcdefgh"), list("bcdefg"), "test")


def test_embedded_digits_by_name() -> None:
    source = NamedDataSetParams(dataset="digits").create(TRAINING)
    assert (len(source), source.classes) == (3600, [str(i) for i in range(10)])
    assert source[0].inputs["image"].shape == (28, 28, 1)
    assert len(NamedDataSetParams(dataset="digits", split="test").create(EVALUATION)) == 1000


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set that TensorFlow Datasets has prepared on disk, in another process: its builders register globally."""
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("tfds")
    code = """
import sys
import tensorflow_datasets as tfds
from tests.data.image.pictures import picture

class TinyPictures(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")
    def _info(self):
        features = {"image": tfds.features.Image(shape=(None, None, 3)), "label": tfds.features.ClassLabel(names=["a", "b"])}
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features), supervised_keys=("image", "label"))
    def _split_generators(self, downloads):
        return {"train": self._generate_examples(40), "test": self._generate_examples(5)}
    def _generate_examples(self, count):
        for i in range(count):
            yield i, {"image": picture(i), "label": i % 2}

TinyPictures(data_dir=sys.argv[1]).download_and_prepare()
"""
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_prepared_data_set_of_tensorflow_datasets(tiny: Path) -> None:
    params = NamedDataSetParams(dataset="tiny_pictures", data_dir=tiny)
    train, validation = params.create(TRAINING), params.create(EVALUATION)
    assert (len(train), len(validation), train.classes) == (36, 4, ["a", "b"])
    images = {picture(i).tobytes(): i % 2 for i in range(40)}
    for source in (train, validation):
        for index in range(len(source)):
            sample = source[index]
            assert images.pop(sample.inputs["image"].tobytes()) == sample.targets["label"]
    assert not images
    assert len(params.replace(dataset="tfds:tiny_pictures", split="test").create(EVALUATION)) == 5


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("dataset", "text"),
    [
        ("cifar10", "not in Keras' cache .*, nor has TensorFlow Datasets prepared it, and .* cannot be reached"),
        ("keras:cifar100", "not in Keras' cache .*, and .* cannot be reached"),
        ("tfds:cifar10", "is not prepared in .*cifar10.*, and .* cannot be reached to download it"),
        ("no_such_set", "TensorFlow Datasets does not know it"),
        ("keras:imagenet", "Keras has no data set 'imagenet' here"),
        ("torch:mnist", "A data set is NAME, tfds:NAME or keras:NAME"),
    ],
)
def test_offline_it_says_at_once_what_is_missing(
    dataset: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named, "DOWNLOAD_HOST", "https://nowhere.invalid")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    start = time.monotonic()
    with pytest.raises(DataError, match=text):
        NamedDataSetParams(dataset=dataset, data_dir=tmp_path).create(TRAINING)
    assert time.monotonic() - start < 10
