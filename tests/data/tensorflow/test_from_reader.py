"""Data sets from a list and a reader: signatures, nested lists, shapes that differ, and what can be read only once."""

from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from scena.data.records import dataset_using_generator
from scena.data.records.record_set import RecordSet
from scena.data.tensorflow.records import dataset_from_tfrecord, dataset_to_tfrecord
from scena.errors import DataError

Point = namedtuple("Point", "x y")


def test_a_data_set_from_a_reader(tmp_path: Path) -> None:
    dataset = dataset_using_generator(["a", "b"], lambda name: (np.zeros((112, 92), np.uint8), ord(name)))
    assert dataset.element_spec == (tf.TensorSpec((112, 92), tf.uint8), tf.TensorSpec((), tf.int32))
    assert [int(label) for _, label in dataset] == [97, 98]
    assert [int(label) for _, label in dataset] == [97, 98]
    dataset_to_tfrecord(dataset, tmp_path / "my_dataset")
    assert dataset_from_tfrecord(tmp_path / "my_dataset").element_spec == dataset.element_spec


def test_a_reader_may_return_several_samples() -> None:
    dataset = dataset_using_generator([2, 3], lambda n: ({"x": i, "s": "t"} for i in range(n)), multiple_samples=True)
    assert [(int(e["x"]), e["s"].numpy()) for e in dataset] == [(0, b"t"), (1, b"t"), (0, b"t"), (1, b"t"), (2, b"t")]


def test_no_sample_no_signature() -> None:
    with pytest.raises(DataError, match="`samples` is empty"):
        dataset_using_generator([], lambda sample: sample)


@pytest.mark.parametrize(
    "once", [(i for i in range(3)), iter([1, 2]), map(str, range(3))], ids=lambda o: type(o).__name__
)
def test_what_can_be_read_only_once_is_refused(once: Any) -> None:
    with pytest.raises(
        DataError, match=f"`samples` is a {type(once).__name__}, which can be read only once.*give a list"
    ):
        dataset_using_generator(once, lambda sample: sample)
    assert len(list(once)) in (2, 3)  # nothing of it was lost


def test_nested_lists_are_tensors_or_tuples() -> None:
    dataset = dataset_using_generator(range(3), lambda i: [np.zeros(4), [[1, 2], [3, i]], [np.ones(2), ["a", "b"]]])
    (zeros, numbers, (ones, texts)) = dataset.element_spec
    assert (zeros.shape, numbers.shape, ones.shape, texts.shape) == ((4,), (2, 2), (2,), (2,))
    assert [int(element[1][1, 1]) for element in dataset] == [0, 1, 2]
    named = dataset_using_generator(range(3), lambda i: Point(i, [i, i]))
    assert named.element_spec._fields == ("x", "y")
    with pytest.raises(DataError, match=r"rows of different lengths: \[\[1, 2\], \[3\]\]"):
        dataset_using_generator(range(3), lambda i: {"a": [[1, 2], [3]]})


def test_axes_that_differ_are_unknown_without_a_signature(tmp_path: Path) -> None:
    dataset = dataset_using_generator(range(40), lambda i: (np.zeros((i % 3 + 1, 4)), 2**40 if i == 39 else i))
    assert dataset.element_spec[0].shape.as_list() == [None, 4] and dataset.element_spec[1].dtype == tf.int64
    assert sum(1 for _ in dataset) == 40
    dataset_to_tfrecord(dataset, tmp_path)
    assert [image.shape[0] for image, _ in RecordSet(tmp_path)][:4] == [1, 2, 3, 1]
    ranks = dataset_using_generator(range(4), lambda i: np.zeros((2,) * i))
    assert ranks.element_spec.shape.rank is None and sum(1 for _ in ranks) == 4
    late = dataset_using_generator(range(100), lambda i: np.zeros(7 if i == 50 else 5))
    with pytest.raises(
        tf.errors.OpError, match=r"Value 50 of the reader has the shape \(7,\), where \(5,\) is expected: give an"
    ):
        list(late)


def test_types_and_shapes_as_older_code_gives_them() -> None:
    types, shapes = ({"a": tf.float32}, tf.int32), ({"a": (None, 3)}, ())

    def reader(i: int) -> Any:
        return {"a": np.zeros((i + 1, 3))}, i

    dataset = dataset_using_generator(range(3), reader, output_types=types, output_shapes=shapes)
    assert dataset.element_spec == ({"a": tf.TensorSpec((None, 3), tf.float32)}, tf.TensorSpec((), tf.int32))
    assert [int(number) for _, number in dataset] == [0, 1, 2]
    unknown = dataset_using_generator(range(3), reader, output_types=types)
    assert unknown.element_spec[0]["a"].shape.rank is None


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (lambda i: (1,) if i else (1, 2), "values of different structures"),
        (lambda i: 1.5 if i else 2, "values of several dtypes in one place: float32, int32"),
    ],
)
def test_readers_that_return_different_things(reader: Callable[[int], Any], text: str) -> None:
    with pytest.raises(DataError, match=text):
        dataset_using_generator(range(3), reader)
