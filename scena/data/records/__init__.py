"""TFRecord files without TensorFlow: reading, writing, random access, schemas, and records of images.

`tensors.py` and `from_reader.py` need TensorFlow; they are imported when they are used.
"""

import importlib
from typing import Any

_NAMES = {
    "RecordError": "framing",
    "RecordFile": "files",
    "RecordSet": "record_set",
    "Schema": "schema",
    "ShardWriter": "files",
    "dataset_from_tfrecord": "tensors",
    "dataset_to_tfrecord": "tensors",
    "dataset_using_generator": "from_reader",
    "decode_example": "example",
    "encode_example": "example",
    "write_records": "writing",
}
__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
