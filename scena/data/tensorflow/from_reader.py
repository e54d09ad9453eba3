"""tf.data.Datasets from a list of samples and a function that reads one of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf

from scena.errors import DataError

LOOKED_AT = 16
"""Values whose shapes are compared where no signature is given: axes that differ among them are unknown."""


def dataset_using_generator(
    samples: Iterable[Any],
    reader: Callable[[Any], Any],
    *,
    multiple_samples: bool = False,
    output_signature: Any = None,
    output_types: Any = None,
    output_shapes: Any = None,
) -> Any:
    """A tf.data.Dataset of what `reader` returns for each sample.

    Args:
        samples: anything that can be iterated again and again, a list for example.
        reader: makes nested dicts, tuples and lists of arrays from a sample. A list of numbers or texts is a tensor; one of
            anything else is a tuple.
        multiple_samples: the reader returns, or yields, several such values at a time.
        output_signature: nested tf.TensorSpecs; default: told from a few of the values, with None for axes that differ among them.
        output_types, output_shapes: the same as two structures, as older code has it.

    Raises:
        DataError: `samples` can be read only once, is empty, or the values do not have one structure.
    """
    if iter(samples) is samples:
        raise DataError(
            f"`samples` is a {type(samples).__name__}, which can be read only once, and a data set is read in every epoch: give a "
            "list, list(samples), or an object whose __iter__ starts again."
        )
    if output_types is not None:
        if output_signature is not None:
            raise DataError("Give output_signature, or output_types (and output_shapes), not both.")
        output_signature = _signature(output_types, output_shapes)
    elif output_shapes is not None:
        raise DataError("output_shapes needs output_types; or give output_signature.")

    def values(chosen: Iterable[Any]) -> Iterator[Any]:
        for sample in chosen:
            made = reader(sample)
            if multiple_samples:
                yield from map(_tensors, made)
            else:
                yield _tensors(made)

    signature = output_signature if output_signature is not None else _looked_up(values, samples)

    def checked() -> Iterator[Any]:
        for number, value in enumerate(values(samples)):
            _check(value, signature, number)
            yield value

    return tf.data.Dataset.from_generator(checked, output_signature=signature)


def _signature(types: Any, shapes: Any) -> Any:
    """The specs of types and, as far as they are given, shapes; a tuple is a shape where there is a type."""
    if isinstance(types, dict):
        return {key: _signature(item, None if shapes is None else shapes[key]) for key, item in types.items()}
    if isinstance(types, tuple | list):
        given = [None] * len(types) if shapes is None else shapes
        return tuple(_signature(item, shape) for item, shape in zip(types, given, strict=True))
    return tf.TensorSpec(None if shapes is None else tf.TensorShape(shapes), types)


def _tensors(value: Any, top: bool = True) -> Any:
    """The value with tuples for lists that are no tensors: [image, label], or a list of arrays."""
    if isinstance(value, dict):
        return {key: _tensors(item, False) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_tensors(item, False) for item in value))
    if isinstance(value, tuple) or (type(value) is list and (top or not _numbers(value))):
        return tuple(_tensors(item, False) for item in value)
    if type(value) is list:
        try:
            return np.asarray(value) if value else value
        except ValueError:
            what = f"A nested list has rows of different lengths: {value!r:.80}"
            raise DataError(f"{what}. Return tf.ragged.constant(…) instead.") from None
    return value


def _numbers(value: list[Any]) -> bool:
    """Whether a list, or the lists in it, hold nothing but numbers and texts."""
    plain = bool | int | float | str | bytes
    return all(_numbers(item) if type(item) is list else isinstance(item, plain) for item in value)


def _looked_up(values: Callable[[Iterable[Any]], Iterator[Any]], samples: Iterable[Any]) -> Any:
    """The signature of the first values, or of some from all over a list."""
    chosen: Iterable[Any] = samples
    if isinstance(samples, Sequence) and len(samples) > LOOKED_AT:
        chosen = [samples[int(index)] for index in np.linspace(0, len(samples) - 1, LOOKED_AT)]
    found = [tf.nest.map_structure(_spec_of, value) for value in islice(values(chosen), LOOKED_AT)]
    if not found:
        raise DataError("There is no first sample to take the signature from: `samples` is empty.")
    first = found[0]
    for other in found[1:]:
        try:
            tf.nest.assert_same_structure(first, other)
        except (ValueError, TypeError) as error:
            reason = str(error).splitlines()[0].rstrip(".:")
            raise DataError(f"The reader returns values of different structures: {reason}.") from None
    return tf.nest.map_structure(_common, *found)


def _common(*specs: Any) -> Any:
    first = specs[0]
    kinds = sorted({spec.dtype.name for spec in specs})
    if kinds == ["int32", "int64"]:  # Python numbers, some of them large
        specs = tuple(tf.TensorSpec(spec.shape, tf.int64) for spec in specs)
        return _common(*specs)
    if len({type(spec) for spec in specs}) > 1 or len(kinds) > 1:
        raise DataError(f"The reader returns values of several dtypes in one place: {', '.join(kinds)}. Return one.")
    if isinstance(first, tf.RaggedTensorSpec):
        return tf.RaggedTensorSpec(None, first.dtype, first.ragged_rank) if len(set(specs)) > 1 else first
    shape = first.shape
    for spec in specs[1:]:
        shape = shape.most_specific_compatible_shape(spec.shape)
    sparse = isinstance(first, tf.SparseTensorSpec)
    return (tf.SparseTensorSpec if sparse else tf.TensorSpec)(shape, first.dtype)


def _spec_of(value: Any) -> Any:
    if isinstance(value, tf.RaggedTensor):
        return tf.RaggedTensorSpec(value.shape, value.dtype, value.ragged_rank)
    if isinstance(value, tf.SparseTensor):
        return tf.SparseTensorSpec(value.shape, value.dtype)
    array = value if hasattr(value, "shape") and hasattr(value, "dtype") else np.asarray(value)
    if isinstance(array, np.ndarray | np.generic) and array.dtype.kind in "USO":
        return tf.TensorSpec(array.shape, tf.string)
    if isinstance(value, int) and array.dtype == np.int64 and abs(value) < 2**31:
        return tf.TensorSpec(array.shape, tf.int32)  # a Python number, as TensorFlow takes it
    if isinstance(value, float) and array.dtype == np.float64:
        return tf.TensorSpec(array.shape, tf.float32)
    return tf.TensorSpec(array.shape, array.dtype)


def _check(value: Any, signature: Any, number: int) -> None:
    """Raises with advice where TensorFlow would only report that shapes differ."""
    items, specs = tf.nest.flatten(value), tf.nest.flatten(signature)
    for item, spec in zip(items, specs, strict=False):  # TensorFlow itself reports another structure
        shape = getattr(item, "shape", None)
        if isinstance(spec, tf.TensorSpec) and shape is not None and not spec.shape.is_compatible_with(shape):
            raise DataError(
                f"Value {number} of the reader has the shape {tuple(shape)}, where {spec.shape} is expected: give an output_signature "
                "with None for the axes that differ."
            )
