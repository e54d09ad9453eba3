"""What a record holds: nested dicts, tuples and lists of tensors, described in JSON that is parsed and never evaluated.

Each tensor has a feature of its own name (its path in the structure), so the order of features does not matter, and any
reader of `tf.train.Example` finds its way. How values are stored:
`int64`, `float`, `bytes`: as such a list; `raw`: all elements in one byte string, little endian.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from scena.checksums import warn_if_json_changed
from scena.data.errors import DataError
from scena.data.records.example import (
    before_bytes,
    encode_example,
    only_bytes,
    only_integer,
    parse_example,
    parse_feature,
)

SCHEMA_FILE = "schema.json"
FORMAT, VERSION = "scena-records", 1
STORED = ("int64", "float", "bytes", "raw")
_ESCAPES = (("~", "~0"), ("/", "~1"), ("#", "~2"))  # in this order, so that an escape is not escaped again


class Leaf:
    """One tensor of a record.

    Attributes:
        key: the name of its feature.
        dtype: a numpy name, or "string".
        shape: None for an axis that differs from record to record; of the flat values, if it is ragged.
        stored: how (see above).
        ragged_rank: 0 for a plain tensor, else the number of ragged axes.
        optional: may be missing in a record (files of others); it is then empty.
    """

    __slots__ = ("decode", "dtype", "key", "numpy_dtype", "optional", "ragged_rank", "shape", "shape_key", "stored")

    def __init__(self, key: str, dtype: str, shape: tuple[int | None, ...], *, stored: str | None = None,
                 ragged_rank: int = 0, optional: bool = False) -> None:  # fmt: skip
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
        return value

    def encode(self, value: Any, into: dict[str, Any]) -> None:
        """Adds the features of one value."""
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
        except (ValueError, TypeError) as error:
            raise DataError(f"The value of {self.key!r} is not {self.dtype}: {error}.") from None
        fits = len(array.shape) == len(shape) and all(
            w is None or w == g for w, g in zip(shape, array.shape, strict=True)
        )
        if not fits:
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
            array = flat.reshape(wanted) if wanted.count(-1) < 2 else flat
        except ValueError:
            raise DataError(
                f"The feature {self.key!r} has {len(flat)} values, which do not fit the shape {self.shape} of the schema."
            ) from None
        return array[()] if shape == () else array

    def _decode_ragged(self, features: Any) -> Any:
        """Nested lists of arrays."""
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


class Schema:
    """The structure of a record, and turning values into records and back."""

    def __init__(self, structure: Any, *, interleaved: bool = False) -> None:
        self.structure = structure
        self.interleaved = interleaved
        """Record i of the whole is record i // n of file i % n (of n files): the order in which it was written."""
        self.leaves: list[Leaf] = list(_leaves(structure))
        flat = isinstance(structure, dict) and all(isinstance(leaf, Leaf) for leaf in structure.values())
        self._flat = [(key, leaf.decode) for key, leaf in structure.items()] if flat else None

    def encode(self, value: Any) -> bytes:
        """One record. A ragged tensor is a pair: its flat values, and the row splits of each ragged axis."""
        features: dict[str, Any] = {}
        _encode(self.structure, value, features, "")
        return encode_example(features)

    def decode(self, data: bytes) -> Any:
        """The value of one record, with numpy arrays; strings are bytes, ragged tensors nested lists of arrays."""
        features = parse_example(data)
        structure = self.structure
        if self._flat is not None:  # the common case, without the calls of the general one
            return {key: decode(features) for key, decode in self._flat}
        return build(structure, _decoded, features)

    def to_json(self) -> dict[str, Any]:
        """The schema as a JSON value."""
        return {"format": FORMAT, "version": VERSION, "interleaved": self.interleaved,
                "structure": _structure_json(self.structure)}  # fmt: skip

    @classmethod
    def from_json(cls, value: Any, file: str = "the schema") -> "Schema":
        """The schema that `to_json` wrote."""
        if not isinstance(value, Mapping) or value.get("format") != FORMAT:
            raise DataError(f"{file} is not a schema of records.")
        if value.get("version") != VERSION:
            raise DataError(f"{file} is of version {value.get('version')}; this Scena reads version {VERSION}.")
        try:
            structure = _structure_from_json(value["structure"])
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{file} is incomplete: {type(error).__name__} {error}.") from None
        return cls(structure, interleaved=bool(value.get("interleaved", False)))

    @classmethod
    def read(cls, path: Path) -> "Schema":
        """The schema in a JSON file."""
        try:
            return cls.parse(path.read_bytes(), str(path))
        except OSError as error:
            raise DataError(f"The schema {str(path)!r} cannot be read: {error.strerror}.") from None

    @classmethod
    def parse(cls, text: bytes, file: str) -> "Schema":
        """The schema in the JSON text of a file."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"The schema {file!r} is not JSON: {error}.") from None
        warn_if_json_changed(value, file)
        return cls.from_json(value, repr(file))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        lines = []
        for leaf in self.leaves:
            shape = " × ".join("?" if size is None else str(size) for size in leaf.shape) or "scalar"
            more = f", {leaf.ragged_rank} ragged" if leaf.ragged_rank else ""
            lines.append(f"{leaf.key}: {leaf.dtype}, {shape}{more}{', may be missing' if leaf.optional else ''}")
        return "\n".join(lines)


def make_structure(value: Any, leaf: Callable[[Any, str], Leaf], path: str = "") -> Any:
    """The structure of nested containers `value`, whose leaves `leaf(value, key)` describes."""
    if isinstance(value, Mapping):
        return {str(key): make_structure(item, leaf, _join(path, str(key))) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = (make_structure(item, leaf, _join(path, str(place))) for place, item in enumerate(value))
        return list(items) if type(value) is list else tuple(items)
    return leaf(value, path or "value")


def build(structure: Any, make: Callable[..., Any], *arguments: Any) -> Any:
    """The same containers with `make(leaf, *arguments)` in place of each leaf."""
    if isinstance(structure, Leaf):
        return make(structure, *arguments)
    if isinstance(structure, dict):
        return {key: build(item, make, *arguments) for key, item in structure.items()}
    return type(structure)(build(item, make, *arguments) for item in structure)


def element_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of a schema's dtype."""
    if name == "string":
        return np.dtype(object)
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return extended
    except (ImportError, AttributeError, TypeError):
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
    """What was read as if it were in the order of bytes of this machine, which is little endian on all but a few."""
    return array if sys.byteorder == "little" else array.byteswap()


def _decoded(leaf: Leaf, features: Any) -> Any:
    return leaf.decode(features)


def _join(path: str, key: str) -> str:
    for character, escape in _ESCAPES:
        key = key.replace(character, escape)
    return f"{path}/{key}" if path else key


def _leaves(structure: Any) -> Iterator[Leaf]:
    if isinstance(structure, Leaf):
        yield structure
    else:
        for item in structure.values() if isinstance(structure, dict) else structure:
            yield from _leaves(item)


def _encode(structure: Any, value: Any, features: dict[str, Any], path: str) -> None:
    if isinstance(structure, Leaf):
        structure.encode(value, features)
    elif isinstance(structure, dict):
        if not isinstance(value, Mapping) or set(map(str, value)) != set(structure):
            received = sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
            raise DataError(f"Expected the keys {sorted(structure)} at {path or 'the top'}. Received: {received}.")
        items = {str(key): item for key, item in value.items()}
        for key, part in structure.items():
            _encode(part, items[key], features, f"{path}/{key}")
    else:
        if not isinstance(value, tuple | list) or len(value) != len(structure):
            raise DataError(f"Expected {len(structure)} items at {path or 'the top'}. Received: {value!r:.80}.")
        for place, part in enumerate(structure):
            _encode(part, value[place], features, f"{path}/{place}")


def _structure_json(structure: Any) -> dict[str, Any]:
    if isinstance(structure, Leaf):
        return structure.to_json()
    if isinstance(structure, dict):
        return {"kind": "dict", "items": [[key, _structure_json(item)] for key, item in structure.items()]}
    return {
        "kind": "list" if isinstance(structure, list) else "tuple",
        "items": [_structure_json(i) for i in structure],
    }


def _structure_from_json(value: Any) -> Any:
    kind = value["kind"]
    if kind == "dict":
        return {str(key): _structure_from_json(item) for key, item in value["items"]}
    if kind in ("list", "tuple"):
        items = (_structure_from_json(item) for item in value["items"])
        return list(items) if kind == "list" else tuple(items)
    if kind not in ("tensor", "ragged"):
        raise DataError(f"The schema has a part of unknown kind: {kind!r}.")
    shape = tuple(None if size is None else int(size) for size in value["shape"])
    return Leaf(str(value["key"]), str(value["dtype"]), shape, stored=value["stored"],
                ragged_rank=int(value.get("ragged_rank", 0)), optional=bool(value.get("optional", False)))  # fmt: skip
