"""Features with one value are read from their bytes; everything else, and everything odd, by protobuf."""

import numpy as np
import pytest
import tensorflow as tf

from scena.data.records.example import (
    before_bytes,
    check_example,
    decode_example,
    encode_example,
    only_bytes,
    only_integer,
    parse_example,
)
from scena.data.records.leaf import Leaf
from scena.data.records.schema import Schema
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
