"""Samples of any source as records: images with a class as image records, anything else with the schema of its values."""

import io
import os
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
from PIL import Image

from scena.data.generator import DataGenerator, has_random_access
from scena.data.image.params import ImagePreparationParams
from scena.data.image.prepare import UnreadableImageError, prepare_data
from scena.data.image.writer import IMAGE_SCHEMA
from scena.data.records.leaf import Leaf
from scena.data.records.schema import Schema, make_structure
from scena.data.records.writing import write_records
from scena.data.sample import Sample
from scena.errors import DataError

_AS_IT_IS = ImagePreparationParams()
LOOKED_AT = 100
"""Samples whose shapes are compared: axes that differ among them vary."""


def write_source(source: DataGenerator[Any], path: Any, *, split: str, shard: tuple[int, int] | None = None,
                 variable_shapes: bool = False, progress: Callable[[int], None] = lambda count: None,
                 **options: Any) -> int:  # fmt: skip
    """Writes the samples of a source, in order, as one split of a folder of records; returns how many.

    Args:
        source: its inputs and targets are dicts of arrays, numbers and texts (or of bytes: encoded images).
        path, split, shard, options: as for `write_records`.
        variable_shapes: every axis may differ from sample to sample.
        progress: is called with the number of samples done.
    """
    samples = _samples(source, shard)
    first = list(islice(samples, LOOKED_AT))
    if not first:
        raise DataError(f"{type(source).__name__} gives no samples for {split!r}{f' (job {shard})' if shard else ''}.")
    values: Iterator[dict[str, Any]]
    if is_image_sample(first[0]):
        arrays = isinstance(first[0].inputs["image"], np.ndarray)
        leaf = Leaf("image", "string", (), python="array" if arrays else "")
        schema, values = Schema({**IMAGE_SCHEMA.structure, "image": leaf}), map(image_record, chain(first, samples))
    else:
        has_meta = any(sample.meta is not None for sample in first)
        schema = schema_of_samples(first, variable_shapes)
        if has_meta:
            schema = Schema({**schema.structure, "meta": Leaf("meta", "string", (), python="plain")})
        values = (_stored(sample, has_meta) for sample in chain(first, samples))

    def counted() -> Iterator[Any]:
        for value in values:
            progress(1)
            yield value

    return write_records(counted(), schema, path, split=split, shard=shard, **options)


def _samples(source: DataGenerator[Any], shard: tuple[int, int] | None) -> Iterator[Sample]:
    if shard is None:
        return iter(source.generate())
    number, count = shard
    if has_random_access(source):
        known: Any = source
        return (known[index] for index in range(number, len(known), count))
    return islice(source.generate(), number, None, count)


def _stored(sample: Sample, has_meta: bool) -> dict[str, Any]:
    if has_meta:
        return {**sample_value(sample), "meta": sample.meta}
    if sample.meta is not None:
        raise DataError(f"{sample.identity()} has meta, but the first {LOOKED_AT} samples have none: it would be lost.")
    return sample_value(sample)


def is_image_sample(sample: Sample) -> bool:
    """Whether a sample is an image (encoded, or an array of 8-bit values) with the number of its class, and perhaps its name."""
    match sample.inputs, sample.targets, sample.meta:
        case {"image": image, **more}, {"label": label, **others}, None | {"name": str()} if not more and not others:
            array = isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3
            shown = isinstance(image, bytes) or (array and image.shape[-1] in (1, 3))
            named = sample.meta is None or len(sample.meta) == 1
            return shown and named and np.ndim(label) == 0 and np.asarray(label).dtype.kind in "iu"
    return False


def image_record(sample: Sample) -> dict[str, Any]:
    """The values of an image record: as it is where all readers decode it alike; an array is stored as a PNG."""
    if not is_image_sample(sample):
        raise DataError(f"{sample.identity()} is not an image with a class and a name, as before: {sample!r:.200}")
    data, label = sample.inputs["image"], int(sample.targets["label"])
    if isinstance(data, bytes):
        try:
            image = prepare_data(data, _AS_IT_IS, statistics=False)
        except UnreadableImageError as error:
            raise DataError(f"The image of {sample.identity()} cannot be stored: {error}.") from None
        data, height, width = image.data, image.height, image.width
    else:
        height, width = data.shape[:2]
        file = io.BytesIO()
        Image.fromarray(data[..., 0] if data.shape[-1] == 1 else data).save(file, "PNG", compress_level=4)
        data = file.getvalue()
    name = sample.meta["name"] if sample.meta else ""
    return {"image": data, "label": label, "height": height, "width": width, "name": os.fsencode(str(name))}


def sample_value(sample: Sample) -> dict[str, Any]:
    """What is stored of a sample: inputs and, if there are any, targets."""
    inputs = {"inputs": _with_arrays(sample.inputs)}
    return inputs if sample.targets is None else inputs | {"targets": _with_arrays(sample.targets)}


def _with_arrays(value: Any) -> Any:
    """Lists are arrays, as they are when they reach a batch."""
    if isinstance(value, dict):
        return {key: _with_arrays(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    try:
        return np.asarray(value)
    except ValueError as error:
        raise DataError(f"A list in a sample is no array, and cannot be stored as a record: {error}.") from None


def schema_of_samples(samples: list[Sample], variable_shapes: bool = False) -> Schema:
    """The schema of some samples: the structure of the first, and None for axes that differ among them."""
    shapes: dict[str, set[tuple[int, ...]]] = {}

    def note(value: Any, key: str) -> Leaf:
        array = _array(value, key)
        shapes.setdefault(key, set()).add(array.shape)
        kind = array.dtype.kind
        if kind not in "USO":
            return Leaf(key, array.dtype.name, array.shape)
        text = kind == "U" or (kind == "O" and all(isinstance(item, str) for item in array.flat))
        return Leaf(key, "string", array.shape, python="str" if text else "")

    for sample in samples:
        make_structure(sample_value(sample), note)

    def common(value: Any, key: str) -> Leaf:
        leaf = note(value, key)
        ranks = {len(shape) for shape in shapes[key]}
        if len(ranks) > 1:
            raise DataError(f"{key!r} has a different number of axes from sample to sample: {sorted(shapes[key])[:4]}.")
        sizes = zip(*shapes[key], strict=True)
        shape = tuple(None if variable_shapes or len(set(axis)) > 1 else axis[0] for axis in sizes)
        return Leaf(key, leaf.dtype, shape, python=leaf.python)

    return Schema(make_structure(sample_value(samples[0]), common))


def _array(value: Any, key: str) -> np.ndarray[Any, Any]:
    if isinstance(value, bytes | str):
        return np.array(value, object)
    array = np.asarray(value)
    if array.dtype == object and not all(isinstance(item, bytes | str) for item in array.flat):
        kind = type(value).__name__
        raise DataError(f"{key!r} of a sample is a {kind}, which cannot be stored as a record: {value!r:.80}")
    return array
