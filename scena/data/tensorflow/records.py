"""tf.data and records: any data set to TFRecord files and back."""

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from scena.data.records.files import RecordFile
from scena.data.records.leaf import AnyRankLeaf, Leaf, SparseLeaf
from scena.data.records.record_set import RecordSet, find_files, find_schema, infer_schema
from scena.data.records.schema import DatasetLeaf, Schema, build, make_structure
from scena.data.records.writing import write_records
from scena.errors import DataError
from scena.storage.location import is_remote, protocol_of

_TOGETHER = 64  # records that Python hands to TensorFlow at a time
_NOT_RAW = {"uint32": "int32", "uint64": "int64"}  # what tf.io.decode_raw does not know, and what has its size


def schema_of(dataset: Any) -> Schema:
    return Schema(make_structure(dataset.element_spec, _leaf_of))


def _leaf_of(spec: Any, key: str) -> Leaf:
    if isinstance(spec, tf.RaggedTensorSpec):
        if spec.ragged_rank == 0:
            spec = tf.TensorSpec(spec.shape, spec.dtype)
        else:
            shape = [None, *spec.shape[spec.ragged_rank + 1 :]]
            return Leaf(key, spec.dtype.name, tuple(shape), ragged_rank=spec.ragged_rank)
    if isinstance(spec, tf.SparseTensorSpec):
        return SparseLeaf(key, spec.dtype.name, None if spec.shape.rank is None else tuple(spec.shape))
    if isinstance(spec, tf.data.DatasetSpec):
        return DatasetLeaf(key, Schema(make_structure(spec.element_spec, _leaf_of)))
    if not isinstance(spec, tf.TensorSpec):
        kind = type(spec).__name__
        raise DataError(
            f"{key!r} of the data set is a {kind}. Records hold tensors (also ragged or sparse) and data sets."
        )
    if spec.shape.rank is None:
        return AnyRankLeaf(key, spec.dtype.name)
    return Leaf(key, spec.dtype.name, tuple(spec.shape))


def dataset_to_tfrecord(dataset: Any, path: Any, *, split: str = "data", shards: int = 1,
                        shard: tuple[int, int] | None = None, compression: str = "", overwrite: bool = False) -> int:  # fmt: skip
    """Writes any tf.data.Dataset as TFRecord files into the folder `path`; returns the number of records.

    Args:
        dataset: its elements are nested dicts and (named) tuples of tensors (also ragged and sparse ones) and data sets.
        path: the folder; each file gets its name when all are complete.
        split: the first part of the names of the files.
        shards: the number of files.
        shard: (i, n): write only element i, i+n, … into file i of n, as one of n jobs.
        compression: "GZIP" or "ZLIB".
        overwrite: replace what is there.
    """
    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise DataError(
            "The data set never ends, so it cannot be written: leave out its repeat(), or end it with take(COUNT)."
        )
    if shard is not None:
        dataset = dataset.shard(shard[1], shard[0])
    return write_records(map(_plain, dataset), schema_of(dataset), path, split=split, shards=shards, shard=shard,
                         compression=compression, overwrite=overwrite)  # fmt: skip


def _plain(element: Any) -> Any:
    if isinstance(element, dict):
        return {key: _plain(item) for key, item in element.items()}
    if isinstance(element, tuple | list):
        return [_plain(item) for item in element]
    if isinstance(element, tf.RaggedTensor):
        return element.flat_values.numpy(), [splits.numpy() for splits in element.nested_row_splits]
    if isinstance(element, tf.data.Dataset):
        return [_plain(item) for item in element]
    if isinstance(element, tf.SparseTensor):
        return element.indices.numpy(), element.values.numpy(), element.dense_shape.numpy()
    return element.numpy()


def dataset_from_tfrecord(path: Any, *, split: str | None = None, schema: Schema | None = None,
                          num_parallel_calls: int | None = None) -> Any:  # fmt: skip
    """The tf.data.Dataset in some record files, in the order in which it was written.

    Args:
        path: a folder, a file, several files, or a pattern. Files of others are read with an inferred schema.
        split: which split of a folder.
        schema: the structure of the records; default: schema.json beside the files.
        num_parallel_calls: for parsing; default: decided by tf.data.
    """
    files = find_files(path, split)
    opened = RecordFile(files[0])
    schema = schema or find_schema(files) or infer_schema(opened)
    names = tf.data.Dataset.from_tensor_slices([str(file) for file in files])

    def read(name: Any) -> Any:
        return tf.data.TFRecordDataset(name, compression_type=opened.compression)

    if not all(map(tensorflow_opens, files)):
        records = _records_from_python(files, schema)
    elif schema.interleaved and len(files) > 1:
        calls = tf.data.AUTOTUNE
        records = names.interleave(read, len(files), block_length=1, num_parallel_calls=calls, deterministic=True)
    else:
        records = names.flat_map(read)
    calls = num_parallel_calls or tf.data.AUTOTUNE
    return records.map(example_parser(schema), num_parallel_calls=calls, deterministic=True)


def tensorflow_opens(path: Any) -> bool:
    return not is_remote(path) or ("::" not in str(path) and protocol_of(path) in tf.io.gfile.get_registered_schemes())


def _records_from_python(files: list[Any], schema: Schema) -> Any:
    """Records at addresses that TensorFlow does not open, in the order in which they were written."""
    records = RecordSet(files, schema=schema)

    def read() -> Iterator[list[bytes]]:
        for start in range(0, len(records), _TOGETHER):
            yield [records.data(index) for index in range(start, min(start + _TOGETHER, len(records)))]

    return tf.data.Dataset.from_generator(read, output_signature=tf.TensorSpec([None], tf.string)).unbatch()


def example_parser(schema: Schema) -> Callable[[Any], Any]:
    """A function from a serialised record to the structure of `schema`, for `Dataset.map`."""
    features: dict[str, Any] = {}
    for leaf in schema.leaves:
        features |= _features(leaf)

    def parse(record: Any) -> Any:
        parsed = tf.io.parse_single_example(record, features) if features else {}
        return build(schema.structure, lambda leaf: _tensor(leaf, parsed))

    return parse


def _features(leaf: Leaf) -> dict[str, Any]:
    kind = {"int64": tf.int64, "float": tf.float32}.get(leaf.stored, tf.string)
    open_length = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
    found: dict[str, Any] = {}
    if leaf.stored == "raw":
        found[leaf.key] = tf.io.FixedLenFeature([], kind)
    elif None in leaf.shape or leaf.optional or leaf.ragged_rank:
        found[leaf.key] = tf.io.FixedLenSequenceFeature([], kind, allow_missing=True)
    else:
        found[leaf.key] = tf.io.FixedLenFeature(list(leaf.shape), kind)
    if leaf.shape_key is not None:
        found[leaf.shape_key] = open_length
    if isinstance(leaf, SparseLeaf):
        found |= dict.fromkeys(leaf.index_keys, open_length)
    for axis in range(leaf.ragged_rank):
        found[leaf.splits_key(axis)] = open_length
    return found


def _tensor(leaf: Leaf, parsed: dict[str, Any]) -> Any:
    value = parsed[leaf.key]
    if isinstance(leaf, DatasetLeaf):
        return tf.data.Dataset.from_tensor_slices(value).map(example_parser(leaf.schema))
    if leaf.stored == "raw":
        known = _NOT_RAW.get(leaf.dtype, leaf.dtype)
        value = tf.io.decode_raw(value, tf.as_dtype(known), little_endian=True)
        if known != leaf.dtype:
            value = tf.bitcast(value, leaf.dtype)
    elif leaf.stored != "bytes":
        value = tf.cast(value, leaf.dtype)
    if leaf.ragged_rank:
        value = tf.reshape(value, [-1, *leaf.shape[1:]])
        splits = [parsed[leaf.splits_key(axis)] for axis in range(leaf.ragged_rank)]
        return tf.RaggedTensor.from_nested_row_splits(value, splits)
    if isinstance(leaf, SparseLeaf):
        indices, dense_shape = (parsed[key] for key in leaf.index_keys)
        rank = tf.size(dense_shape) if leaf.dense_shape is None else len(leaf.dense_shape)
        if leaf.dense_shape is not None:
            dense_shape = tf.ensure_shape(dense_shape, [rank])
        sparse = tf.SparseTensor(tf.reshape(indices, [-1, rank]), tf.reshape(value, [-1]), dense_shape)
        sparse.set_shape(leaf.dense_shape)
        return sparse
    if leaf.shape_key is not None:
        value = tf.reshape(value, parsed[leaf.shape_key])
    if isinstance(leaf, AnyRankLeaf):
        return value
    if leaf.shape_key is None and leaf.stored == "raw":
        value = tf.reshape(value, leaf.shape)
    return tf.ensure_shape(value, leaf.shape) if not leaf.optional else value
