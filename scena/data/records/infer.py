"""A schema for files of others: told from the features of their first records."""

from itertools import islice

import numpy as np

from scena.data.errors import DataError
from scena.data.records.example import Values, decode_example
from scena.data.records.files import RecordFile
from scena.data.records.leaf import Leaf
from scena.data.records.schema import Schema


def infer_schema(file: RecordFile, records: int = 100) -> Schema:
    """The features of the first `records` records: scalars where each has one value, else a list of fixed or open length."""
    seen: dict[str, list[Values]] = {}
    count = 0
    for data in islice(file, records):
        count += 1
        for name, values in decode_example(data).items():
            seen.setdefault(name, []).append(values)
    if not count:
        raise DataError(f"{str(file.path)!r} has no records, so that its schema cannot be told.")
    return Schema({name: _leaf(name, values, count) for name, values in sorted(seen.items())})


def _leaf(name: str, values: list[Values], count: int) -> Leaf:
    kinds = {(v.dtype.name if isinstance(v, np.ndarray) else "string") for v in values if len(v)} or {"string"}
    if len(kinds) > 1:
        raise DataError(f"The feature {name!r} holds different kinds of values: {', '.join(sorted(kinds))}.")
    dtype = kinds.pop()
    stored = {"int64": "int64", "float32": "float"}.get(dtype, "bytes")
    lengths = {len(value) for value in values}
    optional = len(values) < count
    shape: tuple[int | None, ...]
    if lengths == {1} and not optional:
        shape = ()
    else:
        shape = (lengths.pop(),) if len(lengths) == 1 and not optional else (None,)
    return Leaf(name, dtype, shape, stored=stored, optional=optional)
