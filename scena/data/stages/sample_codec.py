"""Samples as plain values, which can be sent to other processes and cached without pickle.

A value becomes nested lists with a tag in front; arrays are taken out and travel as raw bytes. Small records (dataclasses,
named tuples, enums) travel by the name of their class, between the processes of one program only: a file never names a class.
"""

import dataclasses
import datetime
import enum
import importlib
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from scena.data.sample import Sample
from scena.data.spec import ArraySpec
from scena.errors import DataError

Array = np.ndarray[Any, Any]
encode: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode
decode: Callable[[Any], Any] = msgspec.msgpack.Decoder().decode

_PLAIN = frozenset((type(None), bool, float, str, bytes))
_TAGS: dict[type, str] = {list: "l", tuple: "t", set: "s", frozenset: "f"}
_MAKERS: dict[str, Callable[[Any], Any]] = {"l": list, "t": tuple, "s": set, "f": frozenset}
_TIMES: dict[str, Any] = {"datetime": datetime.datetime, "date": datetime.date, "time": datetime.time}
_LARGEST = 1 << 63
ALIGN = 64


class NotPlainError(TypeError):
    """A value that cannot be written as plain values."""


def pack(value: Any, arrays: list[Array], records: bool) -> Any:
    """A value as plain data; arrays are appended to a list. `records`: objects of known classes are allowed."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        return value if -_LARGEST <= value < _LARGEST else ["i", str(value)]
    if kind is dict:
        return ["d", [pack(key, arrays, records) for key in value], [pack(v, arrays, records) for v in value.values()]]
    tag = _TAGS.get(kind)
    if tag is not None:
        return [tag, *(pack(item, arrays, records) for item in value)]
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        arrays.append(np.asarray(value))
        return ["a" if isinstance(value, np.ndarray) else "g", len(arrays) - 1]
    return _pack_rare(value, arrays, records)


def _pack_rare(value: Any, arrays: list[Array], records: bool) -> Any:
    kind = type(value)
    if isinstance(value, Path):
        return ["p", str(value)]
    if kind is complex:
        return ["c", value.real, value.imag]
    if kind.__module__ == "datetime" and kind.__name__ in _TIMES:
        return ["T", kind.__name__, value.isoformat()]
    if records:
        name = [kind.__module__, kind.__qualname__]
        if isinstance(value, enum.Enum):
            return ["E", name, value.name]
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return ["N", name, *(pack(item, arrays, records) for item in value)]
        if dataclasses.is_dataclass(value) or kind is Sample:
            fields = Sample.__slots__ if kind is Sample else [field.name for field in dataclasses.fields(value)]
            return ["R", name, {field: pack(getattr(value, field), arrays, records) for field in fields}]
    raise NotPlainError(f"{kind.__module__}.{kind.__qualname__}")


def unpack(value: Any, arrays: list[Array], records: bool) -> Any:
    """The value that `pack` described."""
    if type(value) is not list:
        return value
    tag = value[0]
    if tag == "d":
        keys, items = ([unpack(item, arrays, records) for item in part] for part in value[1:])
        return dict(zip(keys, items, strict=True))
    if tag == "a":
        return arrays[value[1]]
    maker = _MAKERS.get(tag)
    if maker is not None:
        return maker([unpack(item, arrays, records) for item in value[1:]])
    return _unpack_rare(tag, value, arrays, records)


def _unpack_rare(tag: str, value: Any, arrays: list[Array], records: bool) -> Any:
    if tag == "g":
        return arrays[value[1]][()]
    if tag == "i":
        return int(value[1])
    if tag == "p":
        return Path(value[1])
    if tag == "c":
        return complex(value[1], value[2])
    if tag == "T":
        return _TIMES[value[1]].fromisoformat(value[2])
    if records and tag in "ENR":
        # the module is named by one of our own processes, never by a file
        cls: Any = operator.attrgetter(value[1][1])(importlib.import_module(value[1][0]))
        if tag == "E":
            return cls[value[2]]
        if tag == "N":
            return cls(*(unpack(item, arrays, records) for item in value[2:]))
        made = object.__new__(cls)
        for field, item in value[2].items():
            object.__setattr__(made, field, unpack(item, arrays, records))
        return made
    raise DataError(f"A stored sample holds a value of an unknown kind {tag!r}.")


WHAT_TRAVELS = (
    "arrays, numbers, strings, bytes, paths, dates, lists, tuples, sets and dicts, and between processes also dataclasses, "
    "named tuples and enums"
)


def pack_samples(samples: list[Sample], arrays: list[Array], records: bool) -> list[Any]:
    """Samples as plain data; the error names the one that cannot be."""
    packed = []
    for sample in samples:
        parts = (sample.inputs, sample.targets, sample.outputs, sample.meta, sample.index)
        try:
            packed.append([pack(part, arrays, records) for part in parts])
        except NotPlainError as error:
            where = "travel between processes" if records else "be cached on disk"
            hint = " Use num_processes=0, or let a processor replace it." if records else ""
            problem = f"{sample.identity()} cannot {where}: it holds a {error}"
            raise DataError(f"{problem}. A sample may hold {WHAT_TRAVELS}.{hint}") from None
    return packed


def unpack_samples(packed: list[Any], arrays: list[Array], records: bool) -> list[Sample]:
    """The samples that `pack_samples` described."""
    samples = []
    for parts in packed:
        inputs, targets, outputs, meta = (unpack(part, arrays, records) for part in parts[:4])
        sample = Sample(inputs, targets, outputs, meta)
        sample.index = parts[4]
        samples.append(sample)
    return samples


def dtype_name(dtype: np.dtype[Any]) -> str:
    return dtype.str if dtype.kind != "V" else dtype.name


_DTYPES: dict[str, np.dtype[Any]] = {}


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype that `dtype_name` wrote."""
    found = _DTYPES.get(name)
    if found is None:
        found = _DTYPES[name] = np.dtype(name) if name[0] in "<>|=" else ArraySpec((), name).dtype
    return found


def aligned(offset: int) -> int:
    """The next offset where an array may start."""
    return -(-offset // ALIGN) * ALIGN
