"""`tf.train.Example` messages without TensorFlow: protobuf's own C parser with a description made here.

A message is a map from names to lists of bytes, of float32 or of int64. A reader of our own in pure Python took six times
as long (docs/decisions/0040).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from scena.data.errors import DataError

Values = list[bytes] | np.ndarray[Any, Any]
"""The values of a feature: a list of bytes, or an array of float32 or int64."""


def _example_class() -> Any:
    """The message class, in a pool of its own: TensorFlow's description of it, if it is loaded too, does not collide."""
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
    entry.field.add(name="value", number=2, type=field.TYPE_MESSAGE, type_name=".scena.Feature",
                    label=field.LABEL_OPTIONAL)  # fmt: skip
    features.field.add(name="feature", number=1, type=field.TYPE_MESSAGE, type_name=".scena.Features.FeatureEntry",
                       label=field.LABEL_REPEATED)  # fmt: skip
    example = file.message_type.add(name="Example")
    example.field.add(name="features", number=1, type=field.TYPE_MESSAGE, type_name=".scena.Features",
                      label=field.LABEL_OPTIONAL)  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("scena.Example"))


_MEMBERS = ("bytes_list", "float_list", "int64_list")
_Example = _example_class()


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
    """The features of an Example as protobuf's map; `values_of` reads one.

    Raises:
        DataError: the record holds something else.
    """
    try:
        return _Example.FromString(data).features.feature
    except (message.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"A record of {len(data)} bytes is not a tf.train.Example: {error}.") from None


def values_of(feature: Any) -> Values:
    """The values of one feature, whatever their kind."""
    kind = feature.WhichOneof("kind")
    if kind == "int64_list":
        return np.array(feature.int64_list.value, np.int64)
    if kind == "float_list":
        return np.array(feature.float_list.value, np.float32)
    return list(feature.bytes_list.value)


def decode_example(data: bytes) -> dict[str, Values]:
    """All features of an Example, by name."""
    features = parse_example(data)
    return {name: values_of(features[name]) for name in sorted(features)}
