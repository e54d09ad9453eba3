"""`tf.train.Example` messages without TensorFlow: protobuf's own C parser with a description made here.

A message is a map from names to lists of bytes, of float32 or of int64. A reader in pure Python took six times as long
(docs/decisions/0040). But each part of a message that Python touches costs an object: so a second description leaves features encoded,
and features with one value, as most are, are read from their few bytes here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from scena.errors import DataError

Values = list[bytes] | np.ndarray[Any, Any]
"""The values of a feature: a list of bytes, or an array of float32 or int64."""


def _message_classes(encoded_features: bool) -> tuple[Any, ...]:
    """Example and Feature, in a pool of their own: TensorFlow's description, if it is loaded too, does not collide."""
    file = descriptor_pb2.FileDescriptorProto(name="scena/example.proto", package="scena", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    lists = {"BytesList": field.TYPE_BYTES, "FloatList": field.TYPE_FLOAT, "Int64List": field.TYPE_INT64}
    for name, kind in lists.items():
        file.message_type.add(name=name).field.add(name="value", number=1, type=kind, label=field.LABEL_REPEATED)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(lists, 1):
        feature.field.add(name=_MEMBERS[number - 1], number=number, type=field.TYPE_MESSAGE, type_name=f".scena.{name}",
                          label=field.LABEL_OPTIONAL, oneof_index=0)  # fmt: skip
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry", options=descriptor_pb2.MessageOptions(map_entry=True))
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    value = entry.field.add(name="value", number=2, type=field.TYPE_BYTES, label=field.LABEL_OPTIONAL)
    if not encoded_features:
        value.type, value.type_name = field.TYPE_MESSAGE, ".scena.Feature"
    features.field.add(name="feature", number=1, type=field.TYPE_MESSAGE, type_name=".scena.Features.FeatureEntry",
                       label=field.LABEL_REPEATED)  # fmt: skip
    example = file.message_type.add(name="Example")
    example.field.add(name="features", number=1, type=field.TYPE_MESSAGE, type_name=".scena.Features",
                      label=field.LABEL_OPTIONAL)  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"scena.{name}") for name in ("Example", "Feature"))
    return tuple(map(message_factory.GetMessageClass, found))


_MEMBERS = ("bytes_list", "float_list", "int64_list")
_Example, _Feature = _message_classes(False)
_EncodedFeatures = _message_classes(True)[0]
_LIST, _INTEGERS = 0x0A, 0x1A  # what field 1, and the list of integers in a feature, start with
_BEFORE_INTEGER = {4 + size: bytes([_INTEGERS, size + 2, _LIST, size]) for size in range(1, 11)}
"""What comes before the only value of a feature if that is an integer, by the length of the feature."""


def encode_example(features: Mapping[str, int | Sequence[bytes] | np.ndarray[Any, Any]]) -> bytes:
    """An Example with these features: lists of bytes, one integer, or arrays of floats or integers.

    Equal features give equal bytes.
    """
    example = _Example()
    entries = example.features.feature
    for name, values in features.items():
        entry = entries[name]
        if isinstance(values, int):
            entry.int64_list.value.append(values)
        elif not isinstance(values, np.ndarray):
            entry.bytes_list.value.extend(values)
        elif values.dtype.kind == "f":
            entry.float_list.value.extend(values.reshape(-1).tolist())
        elif values.dtype.kind in "iub":
            entry.int64_list.value.extend(values.reshape(-1).astype(np.int64).tolist())
        else:
            raise DataError(f"The feature {name!r} must be bytes, floats or integers. Received: {values.dtype.name}.")
    encoded: bytes = example.SerializeToString(deterministic=True)
    return encoded


def parse_example(data: bytes) -> Any:
    """The features of an Example by name, for `parse_feature`, `only_bytes` and `only_integer`; raises DataError for other records."""
    return _parsed(_EncodedFeatures, data).features.feature


def check_example(data: bytes) -> None:
    """Raises DataError if a record is not an Example in all its parts."""
    _parsed(_Example, data)


def parse_feature(feature: bytes) -> Any:
    return _parsed(_Feature, feature, "A feature of {} bytes is not one of")


def _parsed(kind: Any, data: bytes, wrong: str = "A record of {} bytes is not") -> Any:
    try:
        return kind.FromString(data)
    except (message.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{wrong.format(len(data))} a tf.train.Example: {error}.") from None


def decode_example(data: bytes) -> dict[str, Values]:
    """All features of an Example, by name."""
    features = parse_example(data)
    return {name: _values_of(parse_feature(features[name])) for name in sorted(features)}


def _values_of(feature: Any) -> Values:
    kind = feature.WhichOneof("kind")
    if kind == "int64_list":
        return np.array(feature.int64_list.value, np.int64)
    if kind == "float_list":
        return np.array(feature.float_list.value, np.float32)
    return list(feature.bytes_list.value)


def before_bytes(size: int) -> bytes:
    """What comes before the only value of a feature if that is a byte string of this size."""
    inner = bytes([_LIST]) + _varint(size)
    return bytes([_LIST]) + _varint(len(inner) + size) + inner


def only_bytes(feature: bytes) -> bytes | None:
    """The value of a feature that holds one byte string; None for any other."""
    start = _inside(feature, 0)
    start = start and _inside(feature, start)
    return feature[start:] if start else None


def only_integer(feature: bytes) -> int | None:
    """The value of a feature that holds one integer, as it is commonly encoded; None for any other."""
    if feature[:4] != _BEFORE_INTEGER.get(len(feature)):
        return None
    value = feature[-1]  # seven bits in each byte, the lowest first; all but the last have the highest bit
    if value > 127:
        return None
    for byte in feature[-2:3:-1]:
        if byte < 128:
            return None
        value = (value << 7) + byte - 128
    if value < 1 << 63:
        return value
    value &= 0xFFFFFFFFFFFFFFFF
    return value if value < 1 << 63 else value - (1 << 64)


def _inside(data: bytes, offset: int) -> int:
    """Where the contents of field 1 begin, if that is all there is from `offset` on; else 0."""
    if len(data) < offset + 2 or data[offset] != _LIST:
        return 0
    length = shift = 0
    for start, byte in enumerate(data[offset + 1 : offset + 6], offset + 2):
        length |= (byte & 127) << shift
        if byte < 128:
            return start if start + length == len(data) else 0
        shift += 7
    return 0


def _varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])
