"""Shape and dtype of one entry of a sample, and bringing a value into that form."""

import importlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from scena.errors import DataError


class ArraySpec:
    """The shape (without batch dimension; None = variable) and dtype of one named array of a sample.

    Example: `{"img": ArraySpec((28, 28), "uint8"), "gt": ArraySpec((), "int32")}`. A `tf.TensorSpec` (no batch
    dimension, as here) or a `keras.Input` (whose batch dimension is dropped) is accepted through `ArraySpec.of`.
    """

    __slots__ = ("dtype", "name", "rank", "shape", "variable")

    def __init__(self, shape: Iterable[int | None], dtype: Any, name: str | None = None) -> None:
        self.shape: tuple[int | None, ...] = tuple(None if size is None else int(size) for size in shape)
        self.dtype: np.dtype[Any] = _spec_dtype(dtype)
        self.name = name
        self.rank = len(self.shape)
        self.variable = None in self.shape

    @classmethod
    def of(cls, spec: Any) -> "ArraySpec":
        """`spec` as an ArraySpec: an ArraySpec, a tf.TensorSpec, a KerasTensor, or a (shape, dtype) pair."""
        if isinstance(spec, ArraySpec):
            return spec
        if isinstance(spec, tuple) and len(spec) == 2 and not isinstance(spec[0], int):
            return cls(spec[0], spec[1])
        if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
            raise DataError(
                f"A spec is an ArraySpec(shape, dtype), a tf.TensorSpec or a keras.Input. Received: {spec!r}"
            )
        shape = list(spec.shape)
        if type(spec).__module__.split(".")[0] == "keras":
            shape = shape[1:]
        return cls(shape, spec.dtype, getattr(spec, "name", None))

    def to_json(self) -> dict[str, Any]:
        return {"shape": list(self.shape), "dtype": self.dtype.name if self.dtype.kind not in "US" else self.dtype.kind}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "ArraySpec":
        return cls(value["shape"], value["dtype"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArraySpec) and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"ArraySpec(shape={self.shape}, dtype={self.dtype.name})"

    def conform(self, value: Any) -> np.ndarray[Any, Any]:
        """`value` as an array of this spec; raises ValueError with the reason if it does not fit."""
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        if array.dtype != self.dtype:
            array = self._cast(array)
        shape = array.shape
        if shape != self.shape:
            fits = (wanted in (None, size) for wanted, size in zip(self.shape, shape, strict=False))
            if len(shape) != self.rank or not all(fits):
                raise ValueError("shape")
        return array

    def _cast(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        wanted, received = self.dtype, array.dtype
        if wanted.kind in "US":
            if received.kind == wanted.kind:
                return array
            if wanted.kind == "U" and received.kind == "O" and all(isinstance(word, str) for word in array.flat):
                return array.astype("U")
            raise ValueError("dtype")
        if received.kind in "iu" and wanted.kind in "iu":
            limits = np.iinfo(wanted)
            if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
                raise ValueError(f"values from {array.min()} to {array.max()} do not fit {wanted.name}")
            return array.astype(wanted)
        if _widens(received.kind, wanted.kind, wanted):
            return array.astype(wanted)
        raise ValueError("dtype")


_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def _widens(received: str, wanted: str, dtype: np.dtype[Any]) -> bool:
    """bool -> int -> float -> complex, and any precision within floats: lossless in kind."""
    if dtype.kind == "V":  # bfloat16 and its kin of ml_dtypes are floats to us
        wanted = "f"
    return received in _ORDER and wanted in _ORDER and _ORDER[received] <= _ORDER[wanted] and wanted != "b"


def describe(value: Any) -> str:
    """Shape and dtype of what was received, for messages."""
    if isinstance(value, np.ndarray | np.generic):
        return f"shape={value.shape}, dtype={value.dtype.name}"
    try:
        array = np.asarray(value)
    except ValueError:
        return f"a ragged {type(value).__name__}"
    if array.dtype == object:
        return f"{type(value).__name__} {str(value)[:80]!r}"
    return f"{type(value).__name__} of shape={array.shape}, dtype={array.dtype.name}"


def _spec_dtype(dtype: Any) -> np.dtype[Any]:
    name = getattr(dtype, "name", dtype)  # tf.DType, np.dtype and np.float32.dtype have a name
    if isinstance(name, str) and name in ("string", "str"):
        return np.dtype("U")
    try:
        return numpy_dtype(name if isinstance(name, str) else dtype)
    except TypeError:
        raise DataError(f"Unknown dtype in a spec. Received: {dtype!r}; use a numpy name such as 'float32'.") from None


def numpy_dtype(name: Any) -> np.dtype[Any]:
    """A dtype of numpy or ml_dtypes; raises TypeError for anything else."""
    if name is None:  # numpy takes it for float64
        raise TypeError(name)
    try:
        found = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):  # numpy parses texts with commas
        try:
            extended = getattr(importlib.import_module("ml_dtypes"), str(name), None)
        except ImportError:
            extended = None
        if not isinstance(extended, type):
            raise TypeError(name) from None
        found = np.dtype(extended)
    if found.fields is not None or found.subdtype is not None:
        raise TypeError(name)
    return found
