"""Finding images: folders of classes, folders of splits, tables; and what must not be mistaken for a class."""

from pathlib import Path
from typing import Any

import pytest

from scena.commands.main import main
from scena.data import DataError, PipelineMode
from scena.data.image.listing import find_images, images_in_tree, split_name
from scena.data.sources.params import ImageFilesParams, ImageRecordsParams
from tests.data.image.pictures import class_folders


def test_names_of_splits() -> None:
    named = ["train", "Training", "val", "valid", "validation_set", "dev", "TEST", "test1", "test-images", "eval"]
    assert [split_name(name) for name in named] == [
        "train", "training", "val", "valid", "validation", "dev", "test", "test1", "test", "eval",
    ]  # fmt: skip
    assert not any(map(split_name, ("trainer", "sample", "models", "contest", "valley", "1")))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Cats and dogs as they are downloaded."""
    root = tmp_path / "dogscats"
    class_folders(root / "train", {"cats": 12, "dogs": 12})
    class_folders(root / "valid", {"cats": 4, "dogs": 3})
    class_folders(root / "sample" / "train", {"cats": 2, "dogs": 2})
    class_folders(root, {"test1": 5})
    (root / "models").mkdir()
    return root


def test_an_archive_with_splits_samples_and_models(archive: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = images_in_tree(archive)
    assert found.classes == ["cats", "dogs"]
    assert {name: len(entries) for name, entries in found.splits.items()} == {"train": 24, "valid": 7}
    params = ImageFilesParams(images=archive)
    with caplog.at_level("INFO", "scena.data"):
        assert [len(params.create(mode)) for mode in (PipelineMode.TRAINING, PipelineMode.EVALUATION)] == [24, 7]
    for text in ("test1/ (its images are in no class folder)", "models/ (it is no split)", "sample/ (it is no split)"):
        assert text in caplog.text


def test_records_keep_the_splits_that_are_given(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(f"records write --images {archive} --output {tmp_path / 'out'}".split()) == 0
    printed = capsys.readouterr().out
    assert "2 classes; train 24 (1 files), valid 7 (1 files)" in printed
    assert "test1/: its images are in no class folder" in printed
    params = ImageRecordsParams(records=tmp_path / "out" / "dogscats")
    source = params.create(PipelineMode.EVALUATION)
    assert len(source) == 7 and source.classes == ["cats", "dogs"]
    assert all((archive / "valid" / source[i].meta["name"]).is_file() for i in range(7))
    assert (
        main(f"records write --images {archive} --output {tmp_path / 'o'} --split_fractions 0.5 0.3 0.2".split()) == 1
    )
    error = capsys.readouterr().err
    assert "is divided already, into train, valid. To keep that, set neither split_names nor split_fractions" in error
    assert not (tmp_path / "o").exists()


def test_a_class_with_the_name_of_a_split_is_asked_about(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "vehicles", {"bus": 3, "car": 3, "train": 3})
    with pytest.raises(
        DataError,
        match=r"folders named like splits \(train\) beside others with images \(bus, car\)\. Set folders=classes if all",
    ):
        images_in_tree(root)
    assert images_in_tree(root, "classes").classes == ["bus", "car", "train"]
    with pytest.raises(DataError, match=r"train' has no folders in it: a split needs one for each class"):
        images_in_tree(root, "splits")
    class_folders(tmp_path / "mixed" / "train", {"a": 3})
    class_folders(tmp_path / "mixed", {"more": 3})
    with pytest.raises(DataError, match="folders=classes"):
        images_in_tree(tmp_path / "mixed")
    assert list(images_in_tree(tmp_path / "mixed", "splits").splits) == ["train"]


def test_splits_without_class_folders(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flat", {"train": 3, "test": 2})
    with pytest.raises(
        DataError, match=r"test' has no folders in it: .* If test, train are classes, set folders=classes"
    ):
        images_in_tree(root)


def test_a_split_may_lack_a_class_but_not_bring_a_new_one(tmp_path: Path) -> None:
    class_folders(tmp_path / "set" / "train", {"daisy": 3, "rose": 3, "tulip": 3})
    class_folders(tmp_path / "set" / "Test", {"tulip": 2})
    found = images_in_tree(tmp_path / "set")
    assert [entry.label for entry in found.splits["test"]] == [2, 2]
    class_folders(tmp_path / "set" / "Test", {"violet": 1})
    with pytest.raises(DataError, match="have different classes: train does not have violet of test"):
        images_in_tree(tmp_path / "set")


def test_other_files_in_class_folders_are_no_images(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    root = class_folders(tmp_path / "fruit", {"lemon": 3, "plum": 3})
    (root / "lemon" / "lemon_000.jpg").rename(root / "lemon" / "no_suffix")
    (root / "lemon" / "lemon_001.jpg").rename(root / "lemon" / "LEMON.0001")
    (root / "plum" / "plum_000.jpg").rename(root / "plum" / "plum.JFIF")  # Pillow knows it, though it is rare
    for name in (".DS_Store", "lemon/.DS_Store", "lemon/notes.txt", "plum/Thumbs.db", "plum/deeper/desktop.ini"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("text")
    with caplog.at_level("INFO", "scena.data"):
        source = ImageFilesParams(images=root, split="all").create(PipelineMode.TRAINING)
    assert len(source) == 6
    told = [record for record in caplog.records if "are not images" in record.message]
    assert [(one.levelname, one.message) for one in told] == [
        ("WARNING", f"{root}: skipped 3 files in class folders that are not images, such as 'lemon/notes.txt'.")
    ]
    assert main(f"records write --images {root} --output {tmp_path / 'out'}".split()) == 0
    assert "plum/deeper/desktop.ini: it is not an image" in capsys.readouterr().out


def test_strays_of_splits_and_of_folders_without_images(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "set" / "train", {"a": 2, "b": 2}).parent
    (root / "train" / "a" / "list.csv").write_text("x")
    assert images_in_tree(root).strays == ["train/a/list.csv"]
    (tmp_path / "texts" / "poems").mkdir(parents=True)
    (tmp_path / "texts" / "poems" / "ode.txt").write_text("x")
    with pytest.raises(DataError, match=r"hold no images\. They hold other files, such as 'poems/ode\.txt'\."):
        images_in_tree(tmp_path / "texts")


def table(tmp_path: Path, text: str, **more: Any) -> Any:
    (tmp_path / "t.csv").write_text(text)
    return find_images(ImageFilesParams(csv=tmp_path / "t.csv", **more))


def test_columns_of_a_table(tmp_path: Path) -> None:
    found = table(tmp_path, "path,width,class,split\na.png,3,x,train\nb.png,4,y,Test\nc.png,3,x,\n")
    assert found.classes == ["x", "y"]
    assert {name: [entry.name for entry in entries] for name, entries in found.splits.items()} == {
        "train": ["a.png"], "test": ["b.png"],
    }  # fmt: skip
    assert found.skipped == [("c.png", "line 4 of the table gives no split")]
    with pytest.raises(DataError, match=r"several columns beside the path: width, height. Name that of the labels"):
        table(tmp_path, "path,width,height\na.png,3,4\n")
    with pytest.raises(DataError, match=r"lists 'a.png' in two splits: 'train', and 'test' in line 3"):
        table(tmp_path, "path,label,split\na.png,x,train\na.png,x,test\n")


def test_labels_that_hardly_repeat_are_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [f"{n}.jpg,{n * 1.5}" for n in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["path,price", *rows, "20.jpg,0.0"]))
    for _ in range(2):
        ImageFilesParams(csv=tmp_path / "t.csv").create(PipelineMode.TRAINING)
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "t.csv: 19 of its 20 classes, such as '1.5', have one image only. Is another column" in record.getMessage()


@pytest.mark.parametrize("separator", [";", "|", " ", ", ", "/"])
def test_several_labels_for_an_image_are_refused(tmp_path: Path, separator: str) -> None:
    labels = ["desert", "sea", "mountains", "desert+sea", "sea+mountains", "desert+mountains", "desert+sea+mountains"]
    for form in ("{}", "[{}]"):
        names = [form.format(label.replace("+", separator)) for label in labels]
        rows = "".join(f'{n}.jpg,"{name}"\n' for n, name in enumerate(names))
        with pytest.raises(
            DataError, match="seems to give several labels to an image, for example .* its 7 different labels combine 3"
        ):
            table(tmp_path, f"path,label\n{rows}")


def test_a_column_for_each_label_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"a column of 0 and 1 for each label \(cat, dog, bird\), as for images with several"
    ):
        table(tmp_path, "path,cat,dog,bird\na.png,1,0,0\nb.png,1,1,0\n")


def test_names_of_several_words_are_classes(tmp_path: Path) -> None:
    names = ["golden retriever", "labrador retriever", "beagle", "red fox", "arctic fox", "grey wolf"]
    rows = "".join(f"{n}.jpg,{name}\n" for n, name in enumerate(names))
    assert len(table(tmp_path, f"path,label\n{rows}").classes) == 6
