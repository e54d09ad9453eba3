"""What a record holds: nested dicts, tuples and lists of tensors, described in JSON that is parsed and never evaluated.

Each tensor has a feature of its own name (its path in the structure), so the order of features does not matter, and any
reader of `tf.train.Example` finds its way.
"""

import functools
import json
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from scena.data.records.example import encode_example, parse_example
from scena.data.records.leaf import STORED, AnyRankLeaf, Leaf, SparseLeaf
from scena.errors import DataError
from scena.storage.checksums import warn_if_json_changed

SCHEMA_FILE = "schema.json"
FORMAT, VERSION = "scena-records", 1
_ESCAPES = (("~", "~0"), ("/", "~1"), ("#", "~2"))  # in this order, so that an escape is not escaped again


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
        if self._flat is not None:  # the common case, without the calls of the general one
            return {key: decode(features) for key, decode in self._flat}
        return build(self.structure, lambda leaf: leaf.decode(features))

    def to_json(self) -> dict[str, Any]:
        """What `schema.json` holds."""
        structure = _structure_json(self.structure)
        return {"format": FORMAT, "version": VERSION, "interleaved": self.interleaved, "structure": structure}

    @classmethod
    def from_json(cls, value: Any, file: str = "the schema") -> "Schema":
        """The schema that `to_json` wrote."""
        if not isinstance(value, Mapping) or value.get("format") != FORMAT:
            raise DataError(f"{file} is not a schema of records.")
        if value.get("version") != VERSION:
            raise DataError(f"{file} is of version {value.get('version')}; this Scena reads version {VERSION}.")
        try:
            structure = _structure_from_json(value["structure"])
            return cls(structure, interleaved=bool(value.get("interleaved", False)))
        except DataError as error:
            raise DataError(f"{file}: {error}") from None
        except RecursionError:
            raise DataError(f"{file} is nested too deeply.") from None
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise DataError(f"{file} is no schema: {type(error).__name__}: {error}.") from None

    @classmethod
    def parse(cls, text: bytes, file: str) -> "Schema":
        """The schema in the JSON text of a file."""
        try:
            value = json.loads(text)
            warn_if_json_changed(value, file)
        except (ValueError, RecursionError) as error:
            raise DataError(f"The schema {file!r} is not JSON: {error}.") from None
        return cls.from_json(value, repr(file))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        lines = []
        for leaf in self.leaves:
            if isinstance(leaf, DatasetLeaf):
                lines += [f"{leaf.key}: data set of", *(f"  {line}" for line in str(leaf.schema).splitlines())]
                continue
            sparse = isinstance(leaf, SparseLeaf)
            known = leaf.dense_shape if isinstance(leaf, SparseLeaf) else leaf.shape
            shape = " × ".join("?" if size is None else str(size) for size in known or ()) or "scalar"
            if known is None or isinstance(leaf, AnyRankLeaf):
                shape = "any shape"
            more = f", {leaf.ragged_rank} ragged" if leaf.ragged_rank else ", sparse" if sparse else ""
            lines.append(f"{leaf.key}: {leaf.dtype}, {shape}{more}{', may be missing' if leaf.optional else ''}")
        return "\n".join(lines)


class DatasetLeaf(Leaf):
    """A data set within a data set, as `window()` makes them: its elements are records in a record.

    Attributes:
        schema: that of its elements.
    """

    def __init__(self, key: str, schema: Schema) -> None:
        super().__init__(key, "string", (None,))
        self.schema = schema

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "kind": "dataset", "elements": _structure_json(self.schema.structure)}

    def encode(self, value: Any, into: dict[str, Any]) -> None:
        super().encode(np.array([self.schema.encode(item) for item in value], object), into)

    def _array_decoder(self) -> Callable[[Any], Any]:
        return lambda features: [self.schema.decode(record) for record in self._decode_array(features)]


def make_structure(value: Any, leaf: Callable[[Any, str], Leaf], path: str = "") -> Any:
    """The structure of nested containers `value`, whose leaves `leaf(value, key)` describes."""
    if isinstance(value, Mapping):
        return {str(key): make_structure(item, leaf, _join(path, str(key))) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = [make_structure(item, leaf, _join(path, str(index))) for index, item in enumerate(value)]
        return items if type(value) is list else _tuple_like(value, items)
    return leaf(value, path or "value")


def build(structure: Any, make: Callable[[Leaf], Any]) -> Any:
    """The same containers with `make(leaf)` in index of each leaf."""
    if isinstance(structure, Leaf):
        return make(structure)
    if isinstance(structure, dict):
        return {key: build(item, make) for key, item in structure.items()}
    items = [build(item, make) for item in structure]
    return items if isinstance(structure, list) else _tuple_like(structure, items)


def _tuple_like(given: Any, items: list[Any]) -> Any:
    """A tuple, or a named one with the fields of the given one."""
    fields = getattr(given, "_fields", None)
    return tuple(items) if fields is None else named_tuple(type(given).__name__, tuple(fields))(*items)


@functools.cache
def named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    """A class of named tuples; the same for the same names."""
    if not all(word.isidentifier() for word in (name, *fields)):
        raise DataError(f"The schema has a named tuple {name!r} with fields that are no names: {', '.join(fields)}.")
    try:
        return namedtuple(name, fields)
    except ValueError as error:
        raise DataError(f"The schema has a named tuple that cannot be made: {error}.") from None


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
        for index, part in enumerate(structure):
            _encode(part, value[index], features, f"{path}/{index}")


def _structure_json(structure: Any) -> dict[str, Any]:
    if isinstance(structure, Leaf):
        return structure.to_json()
    if isinstance(structure, dict):
        return {"kind": "dict", "items": [[key, _structure_json(item)] for key, item in structure.items()]}
    items = [_structure_json(item) for item in structure]
    if hasattr(structure, "_fields"):
        name, fields = type(structure).__name__, list(structure._fields)
        return {"kind": "named tuple", "name": name, "fields": fields, "items": items}
    return {"kind": "list" if isinstance(structure, list) else "tuple", "items": items}


def _structure_from_json(value: Any) -> Any:
    kind = value["kind"]
    if kind == "dict":
        return {str(key): _structure_from_json(item) for key, item in value["items"]}
    if kind in ("list", "tuple", "named tuple"):
        items = [_structure_from_json(item) for item in value["items"]]
        if kind == "named tuple":
            return named_tuple(str(value["name"]), tuple(map(str, value["fields"])))(*items)
        return items if kind == "list" else tuple(items)
    if kind == "dataset":
        return DatasetLeaf(str(value["key"]), Schema(_structure_from_json(value["elements"])))
    if kind not in ("tensor", "ragged", "sparse"):
        raise DataError(f"The schema has a part of unknown kind: {kind!r}.")
    key, dtype = str(value["key"]), str(value["dtype"])
    if value["shape"] is None and kind == "tensor":
        return AnyRankLeaf(key, dtype)
    shape = None if value["shape"] is None else tuple(None if size is None else int(size) for size in value["shape"])
    if any(size is not None and size < 0 for size in shape or ()):
        raise ValueError(f"{key} has a negative shape: {value['shape']}")
    if kind == "sparse":
        return SparseLeaf(key, dtype, shape)
    if shape is None:
        raise DataError(f"The schema gives {key!r} no shape.")
    if value["stored"] not in STORED:
        raise ValueError(f"{key} is stored as {value['stored']!r}")
    return Leaf(key, dtype, shape, stored=value["stored"],
                ragged_rank=int(value.get("ragged_rank", 0)), optional=bool(value.get("optional", False)),
                python=str(value.get("python", "")))  # fmt: skip
