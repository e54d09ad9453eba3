"""Features with one value are read from their bytes; everything else, and everything odd, by protobuf. Schemas give values back as they
were."""

import json
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

from scena.data.records.example import (
    _message_classes,
    before_bytes,
    check_example,
    decode_example,
    encode_example,
    only_bytes,
    only_integer,
    parse_example,
)
from scena.data.records.leaf import AnyRankLeaf, Leaf, SparseLeaf, SparseValue
from scena.data.records.schema import DatasetLeaf, Schema
from scena.errors import DataError

INTEGERS = [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -128, -(2**63)]
SIZES = [0, 1, 119, 123, 124, 125, 126, 127, 128, 16_380, 16_384, 70_000]


def feature_of(**features: object) -> bytes:
    """The encoded feature "f" of an example that TensorFlow has written."""
    example = tf.train.Example(features=tf.train.Features(feature={"f": tf.train.Feature(**features)}))
    encoded: bytes = parse_example(example.SerializeToString())["f"]
    return encoded


@pytest.mark.parametrize("value", INTEGERS)
def test_one_integer(value: int) -> None:
    assert only_integer(feature_of(int64_list=tf.train.Int64List(value=[value]))) == value
    assert decode_example(encode_example({"f": value}))["f"].tolist() == [value]


@pytest.mark.parametrize("size", SIZES)
def test_one_byte_string(size: int) -> None:
    value = np.random.default_rng(size).bytes(size)
    feature = feature_of(bytes_list=tf.train.BytesList(value=[value]))
    assert only_bytes(feature) == value
    assert feature == before_bytes(size) + value


def test_everything_else_is_left_to_protobuf() -> None:
    others = [
        b"",
        feature_of(),
        feature_of(int64_list=tf.train.Int64List(value=[])),
        feature_of(int64_list=tf.train.Int64List(value=[1, 2])),
        feature_of(float_list=tf.train.FloatList(value=[1.0])),
        feature_of(bytes_list=tf.train.BytesList(value=[])),
        feature_of(bytes_list=tf.train.BytesList(value=[b"", b""])),
        feature_of(bytes_list=tf.train.BytesList(value=[b"a", b"bc" * 100])),
        b"\x1a\x02\x08\x05",  # an integer that is not packed, which is allowed
        b"\x0a\x05\x0a\x03abc\x0a\x00",  # a list in two parts
        b"\x0a\xff",
    ]
    assert [only_integer(feature) for feature in others] == [None] * len(others)
    assert [only_bytes(feature) for feature in others] == [None] * len(others)


def test_odd_encodings_and_wrong_kinds_in_a_schema() -> None:
    schema = Schema({"y": Leaf("y", "int64", ()), "b": Leaf("b", "string", ())})

    def record(y: bytes, b: bytes) -> bytes:
        entries = b"".join(
            bytes([10, len(entry)]) + entry for entry in (b"\x0a\x01y\x12" + bytes([len(y)]) + y,
                                                          b"\x0a\x01b\x12" + bytes([len(b)]) + b)
        )  # fmt: skip
        return bytes([10, len(entries)]) + entries

    usual, text = b"\x1a\x03\x0a\x01\x05", b"\x0a\x05\x0a\x03abc"
    assert schema.decode(record(usual, text)) == {"y": 5, "b": b"abc"}
    assert schema.decode(record(b"\x1a\x02\x08\x05", text + b"\x0a\x00")) == {"y": 5, "b": b"abc"}
    with pytest.raises(DataError, match="holds a bytes_list, where the schema says int64_list"):
        schema.decode(record(text, text))
    with pytest.raises(DataError, match="A record has no feature 'b'; it has y"):
        schema.decode(encode_example({"y": 5}))
    broken = record(b"\x1a\x03\x0a\x09\x05", text)
    with pytest.raises(DataError, match=r"A feature of 5 bytes is not one of a tf\.train\.Example"):
        schema.decode(broken)
    with pytest.raises(DataError, match=r"is not a tf\.train\.Example"):
        check_example(broken)


def test_the_description_of_examples_is_that_of_tensorflow() -> None:
    example = tf.train.Example()
    for name, member, value in (("b", "bytes_list", b"x"), ("f", "float_list", 0.5), ("i", "int64_list", -3)):
        getattr(example.features.feature[name], member).value.append(value)
    kind, _ = _message_classes(encoded_features=False)
    found = kind.FromString(example.SerializeToString())
    assert {name: feature.WhichOneof("kind") for name, feature in found.features.feature.items()} == {
        "b": "bytes_list",
        "f": "float_list",
        "i": "int64_list",
    }
    assert text_format.MessageToString(found) == text_format.MessageToString(example)
    assert found.SerializeToString(deterministic=True) == example.SerializeToString(deterministic=True)


def test_all_features_of_an_example_by_name() -> None:
    example = tf.train.Example()
    example.features.feature["texts"].bytes_list.value.extend([b"a", b""])
    example.features.feature["floats"].float_list.value.extend([0.5, -1])
    example.features.feature["integers"].int64_list.value.extend([7, -1])
    example.features.feature["nothing"].SetInParent()
    found = decode_example(example.SerializeToString())
    assert list(found) == ["floats", "integers", "nothing", "texts"]
    assert (found["texts"], found["nothing"]) == ([b"a", b""], [])
    for name, dtype, values in (("floats", np.float32, [0.5, -1]), ("integers", np.int64, [7, -1])):
        array = found[name]
        assert isinstance(array, np.ndarray) and array.dtype == dtype and array.tolist() == values


@pytest.mark.parametrize(
    ("dtype", "value", "kind"),
    [
        ("int64", -(2**63), int),
        ("int32", -5, np.int32),
        ("uint8", 200, np.uint8),
        ("bool", True, np.bool_),
        ("uint64", 2**64 - 1, np.uint64),
        ("float16", 0.5, np.float16),
        ("float32", 1.5, np.float32),
        ("float64", 0.1, np.float64),
        ("string", b"text", bytes),
    ],
)
def test_a_scalar_keeps_its_value_and_its_type(dtype: str, value: Any, kind: type) -> None:
    schema = Schema({"v": Leaf("v", dtype, ())})
    found = schema.decode(schema.encode({"v": value}))["v"]
    assert type(found) is kind and found == value


@pytest.mark.parametrize(("dtype", "value"), [("string", b"ab"), ("int64", 7)])
def test_one_value_is_no_vector(dtype: str, value: Any) -> None:
    message = r"The shape of 'v' differs from the schema\. Expected: \(2,\)\. Received: \(\)\."
    with pytest.raises(DataError, match=message):
        Schema({"v": Leaf("v", dtype, (2,))}).encode({"v": value})


class Point(NamedTuple):
    x: Any
    y: Any


EVERY_KIND = Schema(
    {
        "point": Point(Leaf("point/x", "int64", ()), (Leaf("point/y/0", "float32", (0, 2)),)),
        "list": [Leaf("list/0", "string", (), python="str")],
        "ragged": Leaf("ragged", "int64", (None,), ragged_rank=2),
        "sparse": SparseLeaf("sparse", "float32", (None, 4)),
        "sparse_any": SparseLeaf("sparse_any", "float32", None),
        "any": AnyRankLeaf("any", "float32"),
        "windows": DatasetLeaf("windows", Schema({"n": Leaf("n", "int64", ())})),
        "perhaps": Leaf("perhaps", "int64", (None,), optional=True),
    }
)


def test_every_kind_of_structure_comes_back_with_the_stored_schema() -> None:
    stored = Schema.from_json(json.loads(json.dumps(EVERY_KIND.to_json())))
    assert stored == EVERY_KIND
    assert str(stored).splitlines() == [
        "point/x: int64, scalar",
        "point/y/0: float32, 0 × 2",
        "list/0: string, scalar",
        "ragged: int64, ?, 2 ragged",
        "sparse: float32, ? × 4, sparse",
        "sparse_any: float32, any shape, sparse",
        "any: float32, any shape",
        "windows: data set of",
        "  n: int64, scalar",
        "perhaps: int64, ?, may be missing",
    ]
    sparse = SparseValue(np.array([[0, 3], [1, 0]]), np.array([0.5, 2], np.float32), np.array([2, 4]))
    value = {
        "point": Point(-7, (np.zeros((0, 2), np.float32),)),
        "list": ["süß"],
        "ragged": (np.arange(5), [[0, 2, 3], [0, 1, 1, 5]]),
        "sparse": sparse,
        "sparse_any": sparse,
        "any": np.ones((2, 1, 3), np.float32),
        "windows": [{"n": 1}, {"n": 2}, {"n": 3}],
        "perhaps": [4, 5],
    }
    found = stored.decode(EVERY_KIND.encode(value))
    assert type(found["point"]).__name__ == "Point" and found["point"].x == -7
    assert found["point"].y[0].shape == (0, 2) and isinstance(found["point"].y, tuple)
    assert found["list"] == ["süß"]
    assert [[row.tolist() for row in rows] for rows in found["ragged"]] == [[[0], []], [[1, 2, 3, 4]]]
    for name in ("sparse", "sparse_any"):
        for again, array in zip(found[name], sparse, strict=True):
            np.testing.assert_array_equal(again, array)
    np.testing.assert_array_equal(found["any"], value["any"])
    assert found["windows"] == value["windows"]
    assert found["perhaps"].tolist() == [4, 5]


def test_what_a_schema_file_holds() -> None:
    schema = Schema(
        (
            Point(Leaf("0/x", "int64", ()), Leaf("0/y", "string", (None,), optional=True)),
            Leaf("1", "float32", (None,), ragged_rank=1),
        )
    )
    x = {"kind": "tensor", "key": "0/x", "dtype": "int64", "shape": [], "stored": "int64"}
    y = {"kind": "tensor", "key": "0/y", "dtype": "string", "shape": [None], "stored": "bytes", "optional": True}
    point = {"kind": "named tuple", "name": "Point", "fields": ["x", "y"], "items": [x, y]}
    ragged = {"kind": "ragged", "key": "1", "dtype": "float32", "shape": [None], "stored": "raw", "ragged_rank": 1}
    assert schema.to_json() == {
        "format": "scena-records",
        "version": 1,
        "interleaved": False,
        "structure": {"kind": "tuple", "items": [point, ragged]},
    }


def test_a_missing_optional_feature_is_empty() -> None:
    leaves = {"x": Leaf("x", "float32", (None,), optional=True), "y": Leaf("y", "uint8", (None, None), optional=True)}
    found = Schema.from_json(Schema(leaves).to_json()).decode(encode_example({"n": 1}))
    assert {name: (array.dtype.name, array.shape) for name, array in found.items()} == {
        "x": ("float32", (0,)),
        "y": ("uint8", (0, 0)),
    }


@pytest.mark.parametrize(
    ("dtype", "value"), [("int64", 2**63), ("int64", -(2**63) - 1), ("int64", 2**64), ("uint8", 300), ("int8", -129)]
)
def test_a_number_that_does_not_fit_its_type_is_refused_by_name(dtype: str, value: int) -> None:
    with pytest.raises(DataError, match=rf"The value of 'x' is not {dtype}: "):
        Schema({"x": Leaf("x", dtype, ())}).encode({"x": value})


@pytest.mark.parametrize(
    ("value", "received"),
    [({"x": 1}, r"\['x'\]"), ({"x": 1, "y": 2, "z": 3}, r"\['x', 'y', 'z'\]"), ([1, 2], "list")],
)
def test_a_value_has_the_keys_of_its_schema(value: Any, received: str) -> None:
    schema = Schema({"x": Leaf("x", "int64", ()), "y": Leaf("y", "int64", ())})
    with pytest.raises(DataError, match=rf"Expected the keys \['x', 'y'\] at the top\. Received: {received}\."):
        schema.encode(value)
