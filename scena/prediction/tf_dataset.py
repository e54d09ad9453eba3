"""Batches from a `tf.data.Dataset`, for prediction."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from scena.data.database import DataBase
from scena.data.sample import Batch, Cursor
from scena.data.spec import ArraySpec
from scena.errors import DataError


def dataset_batches(dataset: "tf.data.Dataset", data: DataBase[Any], batch_size: int, targets: bool) -> Iterator[Batch]:
    """The batches of a data set whose elements are a dict of inputs, or (inputs, targets), as the data's specs say; `batch_size` is
    for elements that are single samples.
    """
    specs = [data.input_layer_specs(), *([data.target_layer_specs()] if targets else [])]
    structure = dataset.element_spec
    parts = list(structure) if isinstance(structure, tuple) else [structure]
    if len(parts) < len(specs) or not all(isinstance(part, dict) for part in parts):
        raise DataError(
            f"A data set to predict has elements that are a dict of inputs{', and a dict of targets' if targets else ''}. "
            f"Received: {structure}."
        )
    dataset = dataset.map(lambda *elements: tuple(elements[: len(specs)]))
    for expected, part in zip(specs, parts, strict=False):
        missing = sorted(set(expected) - set(part))
        if missing:
            raise DataError(f"The data set has no {missing[0]!r}; its elements have {sorted(part)}.")
    if _is_single(specs[0], parts[0]):
        dataset = _batched(dataset, specs, data.padding_values(), batch_size)
    for element in dataset.as_numpy_iterator():
        arrays = [
            {name: np.asarray(values[name]) for name in spec} for spec, values in zip(specs, element, strict=True)
        ]
        size = len(next(iter(arrays[0].values())))
        yield Batch(arrays[0], arrays[1] if targets else {}, [None] * size, size, Cursor())


def _is_single(specs: dict[str, ArraySpec], part: dict[str, Any]) -> bool:
    for name, spec in specs.items():
        rank = part[name].shape.rank
        if rank not in (spec.rank, spec.rank + 1):
            raise DataError(
                f"{name!r} of the data set has the shape {part[name].shape}; expected {spec.shape}, or a batch of it."
            )
        if rank == spec.rank:
            return True
    return False


def _batched(
    dataset: "tf.data.Dataset", specs: list[dict[str, ArraySpec]], padding: dict[str, Any], batch_size: int
) -> "tf.data.Dataset":
    dataset = dataset.map(
        lambda *elements: tuple(
            {name: values[name] for name in spec} for spec, values in zip(specs, elements, strict=True)
        )
    )
    if not any(entry.variable for spec in specs for entry in spec.values()):
        return dataset.batch(batch_size)
    shapes = tuple({name: entry.shape for name, entry in spec.items()} for spec in specs)
    values = tuple(
        {name: tf.constant(padding[name], dataset.element_spec[i][name].dtype) for name in spec}
        for i, spec in enumerate(specs)
    )
    return dataset.padded_batch(batch_size, shapes, values)
