"""`scena records convert` and `preview`: data sets and scenarios as records, and pictures of augmented samples."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scena.commands.main import main
from scena.data import DataError, PipelineMode, Sample
from scena.data.generator import IterableGenerator, SequenceGenerator
from scena.data.image.augment.processor import decode_image
from scena.data.records.convert import write_source
from scena.data.records.record_set import RecordSet
from scena.data.sources.digits import load_digits
from scena.data.sources.params import ImageRecordsParams, NamedDataSetParams
from tests.data.image.pictures import class_folders

SCENARIO = "tests.data.image.picture_scenario"


def test_a_data_set_by_name_becomes_image_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "records",
                "convert",
                "--dataset",
                "digits",
                "--output",
                str(tmp_path),
                "--splits",
                "train[:50]",
                "test[:20]",
            ]
        )
        == 0
    )
    assert "wrote 50 records of train[:50]" in capsys.readouterr().out
    source = ImageRecordsParams(records=tmp_path, split="train_-50").create(PipelineMode.TRAINING)
    original = NamedDataSetParams(dataset="digits", split="train[:50]").create(PipelineMode.TRAINING)
    assert source.classes == [str(i) for i in range(10)]
    for index in (0, 17, 49):
        np.testing.assert_array_equal(decode_image(source[index].inputs["image"], 1), original[index].inputs["image"])
        assert source[index].targets["label"] == original[index].targets["label"]


def test_grid_jobs_convert_a_shard_each(tmp_path: Path) -> None:
    for job in range(3):
        arguments = f"records convert --dataset digits --splits test --output {tmp_path} --shard {job}/3"
        assert main(arguments.split()) == 0
    records = RecordSet(tmp_path, "test")
    labels = load_digits("digits", "test")[1]
    assert [records[i]["label"] for i in range(len(records))] == labels.tolist()


def test_grid_jobs_convert_a_source_without_random_access(tmp_path: Path) -> None:
    source = IterableGenerator([Sample({"x": i}) for i in range(8)], PipelineMode.TRAINING)
    counts = [write_source(source, tmp_path, split="train", shard=(job, 3)) for job in range(3)]
    assert counts == [3, 3, 2]
    assert [record["inputs"]["x"] for record in RecordSet(tmp_path)] == list(range(8))


def test_the_generators_of_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"records convert examples.tutorial.min --output {tmp_path}".split()) == 0
    assert "wrote 4,000 records of train" in capsys.readouterr().out
    images, labels = load_digits("digits", "train")
    records = RecordSet(tmp_path, "train")
    assert str(records.schema).splitlines() == ["inputs/img: uint8, 28 × 28", "targets/gt: uint8, scalar"]
    np.testing.assert_array_equal(records[7]["inputs"]["img"], images[7])
    assert records[7]["targets"]["gt"] == labels[7]
    assert len(RecordSet(tmp_path, "validation")) == 1000


def test_shapes_that_differ_and_what_cannot_be_stored(tmp_path: Path) -> None:
    samples = [Sample({"x": np.zeros((i % 3, 2)), "t": "text"}, {"y": [1, 2]}) for i in range(9)]
    assert write_source(SequenceGenerator(samples, PipelineMode.TRAINING), tmp_path / "a", split="train") == 9
    records = RecordSet(tmp_path / "a")
    assert str(records.schema).splitlines() == [
        "inputs/x: float64, ? × 2",
        "inputs/t: string, scalar",
        "targets/y: int64, 2",
    ]
    assert records[4]["inputs"]["x"].shape == (1, 2)
    assert records[4]["inputs"]["t"] == "text"
    with pytest.raises(DataError, match="'inputs/x' of a sample is a object, which cannot be stored"):
        write_source(SequenceGenerator([Sample({"x": object()})], PipelineMode.TRAINING), tmp_path / "b", split="train")
    with pytest.raises(DataError, match="gives no samples for 'train'"):
        write_source(SequenceGenerator([], PipelineMode.TRAINING), tmp_path / "b", split="train")


def test_data_sets_of_a_module_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_sets.py").write_text(
        "import tensorflow as tf\n"
        "def dataset():\n    return tf.data.Dataset.range(10).map(lambda i: (tf.sparse.from_dense([i, 0]), tf.strings.as_string(i)))\n"
        "PAIR = {'train': tf.data.Dataset.range(5), 'test': tf.data.Dataset.range(3)}\nnumber = 3\n"
        "def needs(count):\n    return tf.data.Dataset.range(count)\n"
        "def ends():\n    for i in range(5):\n        yield i // (4 - i)\n"
        "def failing():\n    return tf.data.Dataset.from_generator(ends, output_signature=tf.TensorSpec((), 'int64'))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main("records convert own_sets:dataset --output one --shards 2".split()) == 0
    assert main("records convert own_sets:PAIR --output two".split()) == 0
    assert main("records convert own_sets:dataset --output three --splits train --shard 1/3".split()) == 0
    printed = capsys.readouterr().out
    assert "wrote 10 records of data into one" in printed and "wrote 3 records of test into two" in printed
    assert [record[1] for record in RecordSet("one")] == [b"%d" % i for i in range(10)]
    assert [len(RecordSet("two", split)) for split in ("train", "test")] == [5, 3]
    assert [record[1] for record in RecordSet("three/train-00001-of-00003.tfrecord")] == [b"1", b"4", b"7"]
    for name, text in (
        ("own_sets:datasets", "own_sets has no 'datasets' (did you mean dataset?)"),
        (
            "own_sets:number",
            "own_sets:number must be a tf.data.Dataset, a function that returns one, or a dict of them by split",
        ),
        (
            "own_sets:needs",
            "own_sets:needs() fails: TypeError: needs() missing 1 required positional argument: 'count'.",
        ),
        ("own_sets:failing", "The data set for 'data' fails: ZeroDivisionError: integer division or modulo by zero"),
        ("no_sets:number", "There is no module 'no_sets' for no_sets:number"),
        ("own_sets:dataset --trainer.epochs 3", "--trainer.epochs is not a flag of scena records convert MODULE:NAME"),
        ("own_sets:PAIR --splits dev", "own_sets:PAIR has the splits train, test. Received: 'dev'"),
    ):
        assert main(["records", "convert", *name.split(), "--output", "none"]) != 0
        assert text in capsys.readouterr().err
    assert not Path("none").exists()


def test_preview_shows_originals_and_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = class_folders(tmp_path / "flowers", {"a": 6, "b": 6})
    picture = tmp_path / "preview.png"
    arguments = f"""records preview {SCENARIO} --picture {picture} --samples 3 --copies 4 --size 50 --data ImageFiles
        --data.images {root} --train.augment RandomRotate Normalize --train.augment.RandomRotate.angle 90"""
    assert main(arguments.split()) == 0
    assert "3 samples, each followed by 4 versions" in capsys.readouterr().out
    with Image.open(picture) as image:
        assert image.size == (5 * 54 + 4, 3 * 68 + 4)
        pixels = np.asarray(image, np.int16)
    cells = [pixels[30:50, 4 + k * 54 : 54 + k * 54] for k in range(5)]
    assert all(np.abs(cells[0] - cell).mean() > 5 for cell in cells[1:])  # each version differs from the original


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("records convert --output x", "name a scenario"),
        (f"records convert {SCENARIO} --dataset digits --output x", "name a scenario"),
        ("records convert --dataset digits --output x --nonsense 3", "is not a flag"),
        (f"records convert {SCENARIO} --output x --splits dev", "has the splits train and validation"),
        (f"records convert {SCENARIO}", "--output is required"),
    ],
)
def test_wrong_use(
    arguments: str, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments.split()) == 2
    assert text in capsys.readouterr().err
