"""Any tf.data.Dataset to record files and back, in any structure."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from scena.data.records.record_set import RecordSet
from scena.data.tensorflow.records import dataset_from_tfrecord, dataset_to_tfrecord
from scena.errors import DataError

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64".split()


def nested(index: int) -> Any:
    rows = index % 3 + 1
    return (
        {"b/c": np.full((2, 3), index, np.uint8), "a": ({"deep": np.float64(index)}, b"text %d" % index)},
        np.full((rows, 2), index, np.float32),
        [np.array([b"x"] * rows), np.int32(-index)],
    )


def nested_dataset(count: int) -> Any:
    signature = (
        {
            "b/c": tf.TensorSpec((2, 3), tf.uint8),
            "a": ({"deep": tf.TensorSpec((), tf.float64)}, tf.TensorSpec((), tf.string)),
        },
        tf.TensorSpec((None, 2), tf.float32),
        (tf.TensorSpec((None,), tf.string), tf.TensorSpec((), tf.int32)),
    )
    return tf.data.Dataset.from_generator(
        lambda: (tuple(tuple(p) if isinstance(p, list) else p for p in nested(i)) for i in range(count)),
        output_signature=signature,
    )


def assert_same(first: Any, second: Any) -> None:
    tf.nest.assert_same_structure(first, second)
    for one, other in zip(tf.nest.flatten(first), tf.nest.flatten(second), strict=True):
        if isinstance(one, tf.RaggedTensor):
            one, other = one.to_list(), other.to_list()
        else:
            one, other = one.numpy(), other.numpy()
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("options", [{}, {"shards": 3}, {"shards": 2, "compression": "GZIP"}], ids=str)
def test_a_nested_structure_comes_back_in_order(tmp_path: Path, options: dict[str, Any]) -> None:
    dataset = nested_dataset(10)
    assert dataset_to_tfrecord(dataset, tmp_path / "set", **options) == 10
    back = dataset_from_tfrecord(tmp_path / "set")
    assert back.element_spec == dataset.element_spec
    elements = list(back)
    assert len(elements) == 10
    for one, other in zip(dataset, elements, strict=True):
        assert_same(one, other)
    records = RecordSet(tmp_path / "set")
    assert len(records) == 10
    for index in (7, 0, 9):
        np.testing.assert_array_equal(records[index][1], nested(index)[1])
        assert records[index][0]["a"][1] == nested(index)[0]["a"][1]
        assert records[index][2][1] == -index


def test_more_than_ten_leaves_keep_their_places(tmp_path: Path) -> None:
    dataset = tf.data.Dataset.range(4).map(lambda i: tuple(i * 100 + k for k in range(25)))
    dataset_to_tfrecord(dataset, tmp_path)
    for i, element in enumerate(dataset_from_tfrecord(tmp_path).as_numpy_iterator()):
        assert element == tuple(i * 100 + k for k in range(25))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_as_scalar_and_array(tmp_path: Path, dtype: str) -> None:
    values = tf.cast(tf.constant([[0, 1, 2], [100, 1, 120]]), dtype)
    dataset = tf.data.Dataset.from_tensor_slices((values, values[:, 0]))
    dataset_to_tfrecord(dataset, tmp_path)
    back = dataset_from_tfrecord(tmp_path)
    assert back.element_spec == dataset.element_spec
    for one, other in zip(dataset, back, strict=True):
        assert_same(one, other)
    array, scalar = RecordSet(tmp_path)[1]
    assert array.dtype == scalar.dtype == values.dtype.as_numpy_dtype if dtype != "int64" else scalar == 100
    np.testing.assert_array_equal(array, values[1].numpy())


def test_large_integers_and_negative_zero_survive(tmp_path: Path) -> None:
    values = {
        "i": tf.constant([2**63 - 1, -(2**63)]),
        "u": tf.constant([2**64 - 1, 0], tf.uint64),
        "f": tf.constant([-0.0, np.nan]),
    }
    dataset_to_tfrecord(tf.data.Dataset.from_tensor_slices(values), tmp_path)
    first = next(iter(dataset_from_tfrecord(tmp_path)))
    assert (int(first["i"]), int(first["u"]), np.signbit(first["f"])) == (2**63 - 1, 2**64 - 1, True)


def test_ragged_last_dimensions(tmp_path: Path) -> None:
    ragged = tf.ragged.constant([[[1, 2], []], [[3]], []], dtype=tf.int32)
    inner = tf.RaggedTensor.from_row_lengths(tf.reshape(tf.range(12.0), (6, 2)), [1, 3, 2])
    dataset = tf.data.Dataset.from_tensor_slices({"words": ragged, "points": inner}).batch(2)
    dataset_to_tfrecord(dataset, tmp_path)
    back = dataset_from_tfrecord(tmp_path)
    for one, other in zip(dataset, back, strict=True):
        for key in one:
            assert one[key].to_list() == other[key].to_list()
    words = RecordSet(tmp_path)[0]["words"]
    assert [[list(word) for word in line] for line in words] == [[[1, 2], []], [[3]]]


def test_the_schema_is_json_beside_the_files(tmp_path: Path) -> None:
    dataset_to_tfrecord(nested_dataset(3), tmp_path)
    schema = json.loads((tmp_path / "schema.json").read_text())
    assert schema["format"] == "scena-records"
    keys = [leaf.key for leaf in RecordSet(tmp_path).schema.leaves]
    assert "0/b~1c" in keys
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "checksums.json",
        "data-00000-of-00001.tfrecord",
        "data-00000-of-00001.tfrecord.index",
        "schema.json",
    ]


def test_grid_jobs_write_one_shard_each_and_a_missing_one_is_named(tmp_path: Path) -> None:
    dataset = nested_dataset(10)
    for job in (2, 0):
        dataset_to_tfrecord(dataset, tmp_path, shard=(job, 3))
    with pytest.raises(DataError, match=r"1 of 3 files of 'data' are missing \(data-00001-of-00003\.tfrecord\)"):
        dataset_from_tfrecord(tmp_path)
    dataset_to_tfrecord(dataset, tmp_path, shard=(1, 3))
    for one, other in zip(dataset, dataset_from_tfrecord(tmp_path), strict=True):
        assert_same(one, other)


def test_existing_records_are_kept_unless_asked(tmp_path: Path) -> None:
    dataset_to_tfrecord(tf.data.Dataset.range(5), tmp_path)
    with pytest.raises(DataError, match="already holds data-00000-of-00001"):
        dataset_to_tfrecord(tf.data.Dataset.range(9), tmp_path)
    assert len(list(dataset_from_tfrecord(tmp_path))) == 5
    dataset_to_tfrecord(tf.data.Dataset.range(9), tmp_path, shards=2, overwrite=True)
    assert list(dataset_from_tfrecord(tmp_path).as_numpy_iterator()) == list(range(9))


def test_what_cannot_be_a_set_of_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"The data set never ends, .* leave out its repeat\(\), or end it with take"):
        dataset_to_tfrecord(tf.data.Dataset.range(3).repeat(), tmp_path)
    with pytest.raises(DataError, match="so it has no slash. Received: 'te/st'"):
        dataset_to_tfrecord(tf.data.Dataset.range(3), tmp_path, split="te/st")
    assert list(tmp_path.iterdir()) == []


def test_a_failing_data_set_leaves_no_files(tmp_path: Path) -> None:
    def fail(index: Any) -> Any:
        tf.debugging.assert_less(index, tf.constant(5, tf.int64))
        return index

    with pytest.raises(tf.errors.InvalidArgumentError):
        dataset_to_tfrecord(tf.data.Dataset.range(9).map(fail), tmp_path, shards=2)
    assert list(tmp_path.iterdir()) == []


def test_files_of_others_are_read_with_an_inferred_schema(tmp_path: Path) -> None:
    path = tmp_path / "other.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(5):
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"img"])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                "box": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5] * 4)),
                "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w"] * i)),
            }
            if i % 2:
                feature["sometimes"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    records = RecordSet(path)
    assert records.inferred
    assert str(records.schema).splitlines() == [
        "box: float32, 4",
        "image: string, scalar",
        "label: int64, scalar",
        "sometimes: int64, ?, may be missing",
        "words: string, ?",
    ]
    assert records[3]["label"] == 3
    assert list(records[3]["words"]) == [b"w"] * 3
    assert len(records[2]["sometimes"]) == 0
    elements = list(dataset_from_tfrecord(path).as_numpy_iterator())
    assert [int(element["label"]) for element in elements] == list(range(5))
    assert [len(element["sometimes"]) for element in elements] == [0, 1, 0, 1, 0]


def test_what_cannot_be_stored_says_what_to_do(tmp_path: Path) -> None:
    dataset = tf.data.Dataset.range(2).map(tf.experimental.Optional.from_value)
    with pytest.raises(DataError, match="'value' of the data set is a OptionalSpec. Records hold tensors"):
        dataset_to_tfrecord(dataset, tmp_path)


def test_data_sets_of_data_sets(tmp_path: Path) -> None:
    def element(index: Any) -> Any:
        return {"n": index, "t": tf.fill([index], tf.strings.as_string(index))}

    dataset = tf.data.Dataset.range(7).map(element).window(3)
    dataset_to_tfrecord(dataset, tmp_path)
    again = dataset_from_tfrecord(tmp_path)
    windows = [[int(element["n"]) for element in zip_of(window)] for window in again]
    assert windows == [[0, 1, 2], [3, 4, 5], [6]]
    assert RecordSet(tmp_path)[2]["n"] == [6] and [len(text) for text in RecordSet(tmp_path)[1]["t"]] == [3, 4, 5]


def zip_of(window: Any) -> Any:
    return tf.data.Dataset.zip(window)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is not JSON"), ("[]", "is not a schema"), ('{"format": "scena-records", "version": 9}', "is of version 9"),
     ('{"format": "scena-records", "version": 1, "structure": {"kind": "__import__(\'os\')"}}', "unknown kind")],
)  # fmt: skip
def test_a_wrong_schema_file(tmp_path: Path, text: str, message: str) -> None:
    dataset_to_tfrecord(tf.data.Dataset.range(5), tmp_path)
    (tmp_path / "schema.json").write_text(text)
    with pytest.raises(DataError, match=message):
        dataset_from_tfrecord(tmp_path)


class Point(NamedTuple):
    x: Any
    y: Any


def test_named_tuples_sparse_tensors_and_any_rank(tmp_path: Path) -> None:
    def element(index: Any) -> Any:
        return {"p": Point(index, {"z": tf.cast(index, tf.float32)}), "s": tf.sparse.from_dense([index, 0, index])}

    dataset = tf.data.Dataset.range(6).map(element)
    dataset_to_tfrecord(dataset, tmp_path / "a", shards=2)
    again = dataset_from_tfrecord(tmp_path / "a")
    assert again.element_spec == dataset.element_spec
    for index, (one, other) in enumerate(zip(dataset, again, strict=True)):
        assert type(other["p"]).__name__ == "Point" and other["p"]._fields == ("x", "y")
        assert other["p"].x == index and other["p"].y["z"] == index
        np.testing.assert_array_equal(tf.sparse.to_dense(other["s"]), tf.sparse.to_dense(one["s"]))
    records = RecordSet(tmp_path / "a")
    assert str(records.schema) == "p/0: int64, scalar\np/1/z: float32, scalar\ns: int64, 3, sparse"
    assert records[4]["p"].x == 4 and records[4]["s"].values.tolist() == [4, 4]
    assert records[4]["s"].indices.tolist() == [[0], [2]] and records[4]["s"].dense_shape.tolist() == [3]

    arrays = [np.full((2,) * rank, rank, np.float32) for rank in range(4)]
    signature = tf.TensorSpec(None, tf.float32)
    dataset_to_tfrecord(tf.data.Dataset.from_generator(lambda: arrays, output_signature=signature), tmp_path / "b")
    again = dataset_from_tfrecord(tmp_path / "b")
    assert again.element_spec == signature
    for array, tensor, record in zip(arrays, again, RecordSet(tmp_path / "b"), strict=True):
        np.testing.assert_array_equal(tensor, array)
        np.testing.assert_array_equal(record, array)
    assert str(RecordSet(tmp_path / "b").schema) == "value: float32, any shape"
