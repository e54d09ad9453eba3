"""Any plain value as one string of bytes and back: what the meta of a sample is stored as. Nothing in it is executed."""

from typing import Any

import numpy as np

from scena.data.engines.workers.codec import dtype_name, dtype_of
from scena.data.errors import DataError
from scena.data.stages.sample_codec import WHAT_TRAVELS, NotPlainError, decode, encode, pack, unpack


def to_bytes(value: Any) -> bytes:
    """The value with its arrays.

    Raises:
        DataError: it holds something that is not plain.
    """
    arrays: list[np.ndarray[Any, Any]] = []
    try:
        tree = pack(value, arrays, records=False)
    except NotPlainError as error:
        raise DataError(
            f"The meta of a sample holds a {error}, which cannot be stored. It may hold {WHAT_TRAVELS}."
        ) from None
    return encode([tree, [[dtype_name(array.dtype), list(array.shape), array.tobytes()] for array in arrays]])


def from_bytes(data: bytes) -> Any:
    """The value that `to_bytes` was given."""
    try:
        tree, stored = decode(data)
        arrays = [np.frombuffer(raw, dtype_of(name)).reshape(shape).copy() for name, shape, raw in stored]
        return unpack(tree, arrays, records=False)
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise DataError(f"The meta of a record cannot be read: {error}.") from None
