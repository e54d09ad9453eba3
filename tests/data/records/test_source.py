"""Records as a source of a pipeline: complete shuffle, exact cursor, in workers too. Which files are a set, and what others have
written."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.data import ArraySpec, DataBase, DataBaseParams, DataError, DataPipelineParams, PipelineMode
from scena.data.records.example import encode_example
from scena.data.records.files import index_path
from scena.data.records.framing import frame
from scena.data.records.leaf import Leaf
from scena.data.records.record_set import RecordSet, splits_of
from scena.data.records.schema import Schema
from scena.data.records.writing import write_records
from scena.data.sources.params import RecordsParams
from scena.data.sources.records import Records

SCHEMA = Schema({"x": Leaf("x", "float32", (None,)), "y": Leaf("y", "int64", ())})


class NumbersData(DataBase[DataBaseParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((None,), "float32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"y": ArraySpec((), "int64")}


def write(folder: Path, split: str = "train", count: int = 23, **options: object) -> None:
    values = ({"x": np.full(i % 4, i, np.float32), "y": i} for i in range(count))
    write_records(values, SCHEMA, folder, split=split, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"shards": 3}, {"shards": 2, "compression": "GZIP"}], ids=str)
def test_a_pipeline_on_records_shuffles_completely_and_resumes_exactly(
    tmp_path: Path, options: dict[str, object]
) -> None:
    write(tmp_path, **options)
    source = RecordsParams(records=str(tmp_path), split="train", target_keys={"y": "y"})
    pipeline = NumbersData(DataBaseParams()).create_pipeline(
        PipelineMode.TRAINING, DataPipelineParams(batch_size=4, num_processes=0), source, seed=5
    )
    with pipeline.stream() as stream:
        batches = [next(stream) for _ in range(12)]
    first = np.concatenate([batch.targets["y"] for batch in batches[:6]])
    assert sorted(first) == list(range(23))
    assert list(first) != list(range(23))
    with pipeline.stream(batches[7].cursor) as stream:
        for batch in batches[8:]:
            again = next(stream)
            np.testing.assert_array_equal(again.targets["y"], batch.targets["y"])
            np.testing.assert_array_equal(again.inputs["x"], batch.inputs["x"])


def test_the_split_follows_the_mode(tmp_path: Path) -> None:
    write(tmp_path, "train", 8)
    write(tmp_path, "validation", 4)
    params = RecordsParams(records=str(tmp_path))
    assert len(Records(params, PipelineMode.TRAINING)) == 8
    assert len(Records(params, PipelineMode.EVALUATION)) == 4
    assert len(Records(params.replace(split="train"), PipelineMode.EVALUATION)) == 8
    with pytest.raises(DataError, match="has no split 'other'; it has train, validation"):
        Records(params.replace(split="other"), PipelineMode.TRAINING)


def test_wrong_names_are_explained(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(DataError, match="have no feature 'label'; they have x, y"):
        Records(RecordsParams(records=str(tmp_path), target_keys={"gt": "label"}), PipelineMode.TRAINING)
    with pytest.raises(DataError, match="There are no record files"):
        Records(RecordsParams(records=str(tmp_path / "none")), PipelineMode.TRAINING)


def write_examples(path: Path, *examples: Any) -> None:
    path.write_bytes(b"".join(part for example in examples for part in frame(encode_example(example))))


def test_files_of_others_are_described_by_their_records(tmp_path: Path) -> None:
    first = {"label": 3, "image": [b"a"], "tokens": np.arange(3), "box": np.array([0.5, 1.5], np.float32), "none": []}
    second = {**first, "label": -1, "tokens": np.arange(2), "note": [b"n"]}
    write_examples(tmp_path / "train.tfrecord", first, second)
    records = RecordSet(tmp_path)
    assert records.inferred
    assert str(records.schema).splitlines() == [
        "box: float32, 2",
        "image: string, scalar",
        "label: int64, scalar",
        "none: string, 0",
        "note: string, ?, may be missing",
        "tokens: int64, ?",
    ]
    assert [(record["image"], record["label"], record["note"].tolist()) for record in records] == [
        (b"a", 3, []),
        (b"a", -1, [b"n"]),
    ]
    assert [record["tokens"].tolist() for record in records] == [[0, 1, 2], [0, 1]]
    assert records[0]["box"].tolist() == [0.5, 1.5]
    write_examples(tmp_path / "mixed.tfrecord", {"x": 1}, {"x": np.ones(1, np.float32)})
    with pytest.raises(DataError, match="The feature 'x' holds different kinds of values: float32, int64"):
        RecordSet(tmp_path / "mixed.tfrecord")
    (tmp_path / "empty.tfrecord").touch()
    with pytest.raises(DataError, match="has no records, so its schema cannot be inferred"):
        RecordSet(tmp_path / "empty.tfrecord")


def test_a_file_without_a_number_is_a_split(tmp_path: Path) -> None:
    write_examples(tmp_path / "test.tfrecords", {"x": 1})
    write_examples(tmp_path / "train.tfrecord", {"x": 2}, {"x": 3})
    assert {split: len(files) for split, files in splits_of(tmp_path).items()} == {"test": 1, "train": 1}
    assert [record["x"] for record in RecordSet(tmp_path, "train")] == [2, 3]
    assert [record["x"] for record in RecordSet(tmp_path, "test")] == [1]
    with pytest.raises(DataError, match="has the splits test, train; name one of them"):
        RecordSet(tmp_path)


def test_missing_files_of_a_set_are_named(tmp_path: Path) -> None:
    (tmp_path / "train-00002-of-00007.tfrecord").touch()
    with pytest.raises(DataError) as caught:
        splits_of(tmp_path)
    assert str(caught.value) == (
        f"'{tmp_path}' is not complete: 6 of 7 files of 'train' are missing (train-00000-of-00007.tfrecord, "
        "train-00001-of-00007.tfrecord, train-00003-of-00007.tfrecord, …). Write them, for example with --shard."
    )


def test_records_of_another_structure_do_not_join_a_folder(tmp_path: Path) -> None:
    write(tmp_path)
    other = Schema({"x": Leaf("x", "float64", (None,)), "y": Leaf("y", "int64", ())})
    with pytest.raises(DataError, match="describes records of another structure: choose another folder"):
        write_records([{"x": [0.1], "y": 1}], other, tmp_path, split="test")
    assert len(RecordSet(tmp_path)) == 23
    write(tmp_path, "test")
    assert list(splits_of(tmp_path)) == ["test", "train"]


def test_a_set_of_fewer_files_replaces_another_one(tmp_path: Path) -> None:
    write(tmp_path, shards=3)
    index_path(tmp_path / "train-00001-of-00003.tfrecord").unlink()
    write(tmp_path, shards=2, count=8, overwrite=True)
    names = ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"]
    files = [*names, *(f"{name}.index" for name in names)]
    assert sorted(path.name for path in tmp_path.glob("train*")) == sorted(files)
    assert [record["y"] for record in RecordSet(tmp_path)] == list(range(8))


def test_a_set_of_many_files_keeps_few_of_them_open(tmp_path: Path) -> None:
    write(tmp_path, shards=150, count=300)
    records = RecordSet(tmp_path)
    assert [record["y"] for record in records] == list(range(300))
    opened = [os.readlink(file) for file in Path("/proc/self/fd").iterdir() if file.exists()]
    assert sum(name.startswith(str(tmp_path)) for name in opened) == 128
