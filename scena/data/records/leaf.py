"""One tensor of a record: how it is stored, and turned into features and back.

`int64`, `float`, `bytes`: as such a list; `raw`: all elements in one byte string, little endian.
"""

import math
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from scena.data.records.example import before_bytes, only_bytes, only_integer, parse_feature
from scena.data.spec import numpy_dtype
from scena.data.stages import sample_codec
from scena.errors import DataError

STORED = ("int64", "float", "bytes", "raw")
PYTHON = ("", "str", "plain", "array")


class Leaf:
    """One tensor of a record.

    Attributes:
        key: the name of its feature.
        dtype: a numpy name, or "string".
        shape: None for an axis that differs from record to record; of the flat values, if it is ragged.
        stored: how (see above).
        ragged_rank: 0 for a plain tensor, else the number of ragged axes.
        optional: may be missing in a record (files of others); it is then empty.
        python: what a string was in Python: "str" comes back as text, "plain" is any plain value (see
            scena/data/stages/sample_codec.py), and an image that was an "array" is left to its reader.
    """

    __slots__ = (
        "decode", "dtype", "key", "numpy_dtype", "optional", "python", "ragged_rank", "shape", "shape_key", "stored",
    )  # fmt: skip

    def __init__(self, key: str, dtype: str, shape: tuple[int | None, ...], *, stored: str | None = None,
                 ragged_rank: int = 0, optional: bool = False, python: str = "") -> None:  # fmt: skip
        if python not in PYTHON or (python and dtype != "string"):
            raise DataError(f"The schema has {key!r} as a {dtype} for Python's {python!r}, which is not known.")
        self.python = python
        self.key = key
        self.dtype = dtype
        self.shape = shape
        self.ragged_rank = ragged_rank
        self.optional = optional
        self.stored = stored or _storage(dtype, shape, ragged_rank)
        if self.stored not in STORED:
            raise DataError(f"The schema stores {key!r} as {stored!r}; known are {', '.join(STORED)}.")
        self.numpy_dtype: np.dtype[Any] = element_dtype(dtype)
        """The dtype of its elements (object for strings)."""
        needed = None in shape and not ragged_rank and (len(shape) > 1 or self.stored == "raw")
        self.shape_key = f"{key}#shape" if needed else None
        """The feature with the shape, where the shape is needed and not known."""
        self.decode: Callable[[Any], Any] = self._decoder()

    def splits_key(self, axis: int) -> str:
        """The feature with the row splits of a ragged axis."""
        return f"{self.key}#splits{axis}"

    def to_json(self) -> dict[str, Any]:
        """The leaf as a JSON value."""
        value: dict[str, Any] = {"kind": "tensor", "key": self.key, "dtype": self.dtype, "shape": list(self.shape),
                                 "stored": self.stored}  # fmt: skip
        if self.ragged_rank:
            value |= {"kind": "ragged", "ragged_rank": self.ragged_rank}
        if self.optional:
            value["optional"] = True
        if self.python:
            value["python"] = self.python
        return value

    def encode(self, value: Any, into: dict[str, Any]) -> None:
        """Adds the features of one value."""
        if self.python == "plain":
            into[self.key] = [to_bytes(value)]
            return
        if self.shape == () and not self.ragged_rank:  # the common kinds, without the detour through an array
            if self.stored == "bytes" and type(value) is bytes:
                into[self.key] = [value]
                return
            if self.dtype == "int64" and type(value) is int and -(2**63) <= value < 2**63:
                into[self.key] = value
                return
        if self.ragged_rank:
            flat, splits = value
            for axis, row_splits in enumerate(splits):
                into[self.splits_key(axis)] = np.asarray(row_splits, np.int64)
            into[self.key] = self._encoded(self._array(flat, self.shape))
            return
        array = self._array(value, self.shape)
        into[self.key] = self._encoded(array)
        if self.shape_key is not None:
            into[self.shape_key] = np.array(array.shape, np.int64)

    def _array(self, value: Any, shape: tuple[int | None, ...]) -> np.ndarray[Any, Any]:
        try:
            array = np.asarray(value, dtype=self.numpy_dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise DataError(f"The value of {self.key!r} is not {self.dtype}: {error}.") from None
        pairs = zip(shape, array.shape, strict=False)
        if len(array.shape) != len(shape) or any(wanted not in (None, size) for wanted, size in pairs):
            raise DataError(
                f"The shape of {self.key!r} differs from the schema. Expected: {shape}. Received: {array.shape}. "
                "Give the schema (or the data set's signature) None for axes that vary."
            )
        return array

    def _encoded(self, array: np.ndarray[Any, Any]) -> Any:
        if self.stored == "raw":
            return [_native(array).tobytes()]
        if self.stored == "bytes":
            return [item if isinstance(item, bytes) else str(item).encode() for item in array.reshape(-1).tolist()]
        return array

    def _decoder(self) -> Callable[[Any], Any]:
        plain = self._array_decoder()
        if self.python == "plain":
            return lambda features: from_bytes(plain(features))
        if self.python == "str":
            return lambda features: _as_text(plain(features))
        return plain

    def _array_decoder(self) -> Callable[[Any], Any]:
        if self.ragged_rank:
            return self._decode_ragged
        if self.shape == () and self.stored == "int64":
            return self._int_decoder()
        if self.shape == () and self.stored == "bytes":
            return self._decode_bytes
        if self.stored == "raw" and None not in self.shape and self.shape:
            return self._raw_decoder()
        return self._decode_array

    def _int_decoder(self) -> Callable[[Any], Any]:
        key, kind = self.key, int if self.dtype == "int64" else self.numpy_dtype.type

        def decode(features: Any) -> Any:
            value = only_integer(features.get(key, b""))
            return self._decode_array(features) if value is None else value if kind is int else kind(value)

        return decode

    def _decode_bytes(self, features: Any) -> Any:
        value = only_bytes(features.get(self.key, b""))
        return self._decode_array(features) if value is None else value

    def _raw_decoder(self) -> Callable[[Any], Any]:
        """For elements in one byte string, of a known shape: a closure, because this is what small records consist of."""
        key, dtype, shape = self.key, self.numpy_dtype, self.shape
        before = before_bytes(math.prod(shape) * dtype.itemsize)  # type: ignore[arg-type]
        start, total = len(before), len(before) + math.prod(shape) * dtype.itemsize  # type: ignore[arg-type]
        flat, little, frombuffer = len(shape) == 1, sys.byteorder == "little", np.frombuffer

        def decode(features: Any) -> Any:
            feature = features.get(key, b"")
            if len(feature) != total or not feature.startswith(before):
                return self._decode_array(features)
            array = frombuffer(feature[start:], dtype)
            if not little:
                array = _native(array)
            return array if flat else array.reshape(shape)

        return decode

    def _decode_array(self, features: Any) -> Any:
        shape = self.shape
        if self.shape_key is not None and self.shape_key in features:
            shape = tuple(parse_feature(features[self.shape_key]).int64_list.value)
        flat = self._flat(features)
        wanted = tuple(-1 if size is None else size for size in shape)
        try:
            if not len(flat):  # a missing one
                wanted = tuple(size or 0 for size in shape)
            array = flat.reshape(wanted) if wanted.count(-1) < 2 else flat
        except ValueError:
            what = f"The feature {self.key!r} has {len(flat)} values"
            raise DataError(f"{what}, which do not fit the shape {self.shape} of the schema.") from None
        return array[()] if shape == () else array

    def _decode_ragged(self, features: Any) -> Any:
        rows: Any = self._flat(features).reshape(-1, *self.shape[1:])
        for axis in range(self.ragged_rank - 1, -1, -1):
            splits = list(parse_feature(features[self.splits_key(axis)]).int64_list.value)
            rows = [rows[first:last] for first, last in pairwise(splits)]
        return rows

    def _flat(self, features: Any) -> np.ndarray[Any, Any]:
        if self.key not in features:
            if self.optional:
                return np.empty(0, self.numpy_dtype)
            raise DataError(f"A record has no feature {self.key!r}; it has {', '.join(sorted(features)) or 'none'}.")
        feature = parse_feature(features[self.key])
        kind = feature.WhichOneof("kind")
        wanted = {"int64": "int64_list", "float": "float_list"}.get(self.stored, "bytes_list")
        if kind not in (wanted, None):
            raise DataError(f"The feature {self.key!r} holds a {kind}, where the schema says {wanted}.")
        if self.stored == "raw":
            data = feature.bytes_list.value
            if len(data) != 1 or len(data[0]) % self.numpy_dtype.itemsize:
                raise DataError(f"The feature {self.key!r} does not hold whole elements of {self.dtype}.")
            return _native(np.frombuffer(data[0], self.numpy_dtype))
        if self.stored == "bytes":
            texts = feature.bytes_list.value
            flat = np.empty(len(texts), object)
            flat[:] = list(texts)
            return flat
        values = getattr(feature, wanted).value
        return np.array(values, np.int64 if self.stored == "int64" else np.float32).astype(self.numpy_dtype, copy=False)


class AnyRankLeaf(Leaf):
    """A tensor whose number of axes differs from record to record; its shape is stored with it."""

    def __init__(self, key: str, dtype: str) -> None:
        super().__init__(key, dtype, (None, None))

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "shape": None}

    def _array(self, value: Any, shape: tuple[int | None, ...]) -> np.ndarray[Any, Any]:
        array = np.asarray(value, dtype=self.numpy_dtype)
        return super()._array(array, array.shape)


class SparseValue(NamedTuple):
    """A sparse tensor in numpy: where its values are, the values, and the shape of the whole."""

    indices: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]
    dense_shape: np.ndarray[Any, Any]


class SparseLeaf(Leaf):
    """A sparse tensor: its values, where they are, and the shape of the whole.

    Attributes:
        dense_shape: what is known of that shape; None if not even the number of axes is.
    """

    def __init__(self, key: str, dtype: str, dense_shape: tuple[int | None, ...] | None) -> None:
        super().__init__(key, dtype, (None,))
        self.dense_shape = dense_shape

    @property
    def index_keys(self) -> tuple[str, str]:
        """The features with the indices and the shape of the whole."""
        return f"{self.key}#indices", f"{self.key}#dense_shape"

    def to_json(self) -> dict[str, Any]:
        shape = None if self.dense_shape is None else list(self.dense_shape)
        return {**super().to_json(), "kind": "sparse", "shape": shape}

    def encode(self, value: Any, into: dict[str, Any]) -> None:
        indices, values, dense_shape = value
        super().encode(values, into)
        for key, numbers in zip(self.index_keys, (indices, dense_shape), strict=True):
            into[key] = np.asarray(numbers, np.int64).reshape(-1)

    def _array_decoder(self) -> Callable[[Any], Any]:
        return self._decode_sparse

    def _decode_sparse(self, features: Any) -> SparseValue:
        found = (parse_feature(features[key]).int64_list.value for key in self.index_keys)
        indices, dense_shape = (np.array(values, np.int64) for values in found)
        return SparseValue(indices.reshape(-1, len(dense_shape)), self._decode_array(features), dense_shape)


def _as_text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return np.array([item.decode() for item in value.flat]).reshape(value.shape)


def element_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of a schema's dtype."""
    if name == "string":
        return np.dtype(object)
    try:
        return numpy_dtype(name)
    except TypeError:
        raise DataError(f"The schema names an unknown dtype: {name!r}.") from None


def _storage(dtype: str, shape: tuple[int | None, ...], ragged_rank: int) -> str:
    if dtype == "string":
        return "bytes"
    if shape == () and not ragged_rank:
        kind = element_dtype(dtype)
        if kind.kind in "ib" or (kind.kind == "u" and kind.itemsize < 8):
            return "int64"
        if kind == np.float32:
            return "float"
    return "raw"


def _native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Little-endian elements in the byte order of this machine."""
    return array if sys.byteorder == "little" else array.byteswap()


def to_bytes(value: Any) -> bytes:
    """The value with its arrays; raises DataError if it holds something that is not plain."""
    arrays: list[np.ndarray[Any, Any]] = []
    try:
        tree = sample_codec.pack(value, arrays, records=False)
    except sample_codec.NotPlainError as error:
        what = f"The meta of a sample holds a {error}, which cannot be stored"
        raise DataError(f"{what}. It may hold {sample_codec.WHAT_TRAVELS}.") from None
    stored = [[sample_codec.dtype_name(array.dtype), list(array.shape), array.tobytes()] for array in arrays]
    return sample_codec.encode([tree, stored])


def from_bytes(data: bytes) -> Any:
    try:
        tree, stored = sample_codec.decode(data)
        flat = [(np.frombuffer(raw, sample_codec.dtype_of(name)), shape) for name, shape, raw in stored]
        return sample_codec.unpack(tree, [array.reshape(shape).copy() for array, shape in flat], records=False)
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise DataError(f"The meta of a record cannot be read: {error}.") from None
