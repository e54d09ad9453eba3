"""Batches of image records made by tf.data: the same batches, cursor and order as those of the Python pipeline.

Records are read by index, a batch at a time, so that shuffling is complete and resuming starts at the next sample; parsing, decoding,
augmentation and batching run in TensorFlow's threads.
"""

import math
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from scena.data.engines.in_process import Engine, InProcessEngine, empty
from scena.data.image.augment.operations import Cropping, OperationList, Resize
from scena.data.image.params import AugmentParams
from scena.data.image.prepare import orientation
from scena.data.params import PipelineMode
from scena.data.sample import Batch, Cursor
from scena.data.sources.records import ImageRecords
from scena.data.stages.context import PipelineContext
from scena.data.stages.rng import keys_of
from scena.data.stages.sample_cache import StoredSamples
from scena.data.tensorflow import augment_ops as tensors
from scena.errors import DataError, ParamsError

_MARGIN = 2
_TRIED = 20
"""Samples that are looked at before a pipeline starts."""
_AHEAD_BYTES = 1 << 28


def check_tensor_pipeline(context: PipelineContext) -> None:
    """Raises ParamsError for settings that only the engine `python` supports."""
    params: Any = context.pipeline
    if params.engine == "tf.data.interleave" and (params.preload or params.cache_dir):
        raise ParamsError("preload and cache_dir need reading by index: use --train.engine tf.data with them.")
    if not isinstance(context.generator, ImageRecords):
        raise ParamsError(
            f"engine={params.engine} reads image records (ImageRecords). Received: {type(context.generator).__name__}; write records "
            "with `scena records write` or `convert`, or use engine=python."
        )
    if any(True for _ in context.data.pre_proc):
        raise ParamsError(f"engine={params.engine} does not run processors in Python (pre_proc): use engine=python.")
    if params.bucket_boundaries or params.on_error != "raise":
        raise ParamsError(f"engine={params.engine} has no buckets and no on_error=skip: use engine=python.")
    source = context.generator
    for index in range(0, len(source), -(-len(source) // _TRIED) or 1):
        if orientation(source[index].inputs["image"]) != 1:
            raise ParamsError(
                f"engine={params.engine} does not rotate images by their EXIF orientation, as engine=python, predictions and services do; "
                f"sample {index} of {source.title()} has one. Use engine=python, or write the records with `scena records write`."
            )


class TensorEngine(Engine):
    """Yields batches from a cursor on, epoch after epoch."""

    def __init__(self, context: PipelineContext) -> None:
        self.context = context
        self.source: Any = context.generator
        self._stored = isinstance(context.generator, StoredSamples)
        """Whether decoded images are read, that were kept in memory or on disk."""
        processors = list(context.processors)
        self._processor = len(processors)
        self._device = training_device() if context.mode is PipelineMode.TRAINING else None
        augment = processors[-1]
        assert isinstance(augment, AugmentParams)
        self._operations = OperationList(augment.operations)
        self._spec = context.collator.inputs["image"]
        self._size: tuple[int | None, int | None] = getattr(context.generator, "image_size", None) or (None, None)
        self._single, self._between = single_images(self._operations, (*self._size, self._spec.shape[2]))
        self._start = Cursor()
        self._repeat = False
        self._dataset: Any = None
        self._count = len(context.order(0))  # images have no lists that change an epoch's length
        size = context.pipeline.batch_size
        self._sizes = [size] * (self._count // size)
        if self._count % size and not context.pipeline.batch_drop_remainder:
            self._sizes.append(self._count % size)

    def batches(self, cursor: Cursor, repeat: bool) -> Generator[Batch, None, None]:
        if not self._sizes:
            raise empty(self.context)
        elements: Any = None
        try:
            while True:
                if cursor.batch >= len(self._sizes):
                    if not repeat:
                        return
                    cursor = Cursor(cursor.epoch + 1)
                if elements is None:
                    elements = self._elements(cursor, repeat)
                try:
                    element = next(elements)
                except tf.errors.OpError as error:
                    raise self._explained(error, cursor) from error
                size = self._sizes[cursor.batch]
                cursor = Cursor(cursor.epoch, cursor.batch + 1, cursor.samples + size, self.state)
                yield self._batch(element, size, cursor)
        finally:
            getattr(elements, "close", lambda: None)()

    @property
    def state(self) -> Any:
        """What the order depends on beside seed and epoch; stored with a position."""
        return None

    def _elements(self, cursor: Cursor, repeat: bool) -> Iterator[Any]:
        """Batches as tensors from a position within an epoch on."""
        self._start, self._repeat = cursor, repeat
        if self._dataset is None:
            self._dataset = self._build()
        return iter(self._dataset)

    def close(self) -> None:
        """Nothing is kept."""

    def _batch(self, element: Any, size: int, cursor: Cursor) -> Batch:
        """A batch without what fills it up at the end of an epoch."""
        mode = self.context.mode
        image = element["image"]
        if self._device is None:
            image = image.numpy()
        inputs = {"image": image if size == image.shape[0] else image[:size]} if mode.has_inputs else {}
        targets = {"label": element["label"].numpy()[:size]} if mode.has_targets else {}
        meta: list[Any] = [None] * size
        if "name" in element:
            names = element["name"].numpy()[:size]
            meta = [{"name": name.decode(errors="replace")} if name else None for name in names]
        return Batch(inputs, targets, meta, size, cursor)

    def _explained(self, error: Any, cursor: Cursor) -> DataError:
        """Looks for the sample that failed by making the batch in Python, which names it."""
        try:
            next(iter(InProcessEngine(self.context).batches(cursor, False)), None)
        except DataError as known:
            return known
        return failed(error, cursor)

    def _build(self) -> Any:
        size = [self.context.pipeline.batch_size]
        signature = {"key": tf.TensorSpec(size, tf.uint64), "real": tf.TensorSpec(size, tf.bool)}
        if self._stored:
            kinds = {"image": tf.string, "label": tf.int64, "name": tf.string}
            signature |= {name: tf.TensorSpec(size, kind) for name, kind in kinds.items()}
            signature["shape"] = tf.TensorSpec([*size, 3], tf.int32)
        else:
            signature["record"] = tf.TensorSpec(size, tf.string)
        return self._decoded(tf.data.Dataset.from_generator(self._read, output_signature=signature))

    def _decoded(self, chunks: Any, options: bool = True) -> Any:
        """Batches from the records of each: parsed, decoded and augmented on all cores, prepared ahead, on the device."""
        params, spec = self.context.pipeline, self._spec
        parallel = {"num_parallel_calls": tf.data.AUTOTUNE, "deterministic": True}
        dataset = (chunks if self._stored else chunks.map(self._parse)).unbatch()
        dataset = dataset.map(self._made, **parallel).batch(params.batch_size, drop_remainder=True)
        dataset = dataset.map(self._finished, **parallel)
        if not options:
            return dataset
        if self._device is not None:
            dataset = dataset.apply(tf.data.experimental.copy_to_device(self._device))
        each = params.batch_size * math.prod(size or 1 for size in spec.shape) * spec.dtype.itemsize
        ahead = max(2, min(params.prefetch, _AHEAD_BYTES // each))
        chosen = tf.data.Options()
        chosen.deterministic = True
        return dataset.prefetch(ahead).with_options(chosen)

    def _read(self) -> Iterator[dict[str, Any]]:
        """The records of each batch, with the random key of each; a last batch is filled up with what is not decoded."""
        context, size = self.context, self.context.pipeline.batch_size
        epoch, first, repeat = self._start.epoch, self._start.samples, self._repeat
        end = sum(self._sizes)
        while True:
            order = context.new_order(epoch)
            for start in range(first, end, size):
                ordinals = range(start, min(start + size, end))
                indices = [int(order[ordinal]) for ordinal in ordinals]
                keys = keys_of(context.seed, epoch, ordinals, self._processor)
                missing = size - len(indices)
                yield {
                    **self._chunk(indices + indices[:1] * missing),
                    "key": np.concatenate([keys, np.zeros(missing, np.uint64)]),
                    "real": np.arange(size) < len(indices),
                }
            if not repeat:
                return
            epoch, first = epoch + 1, 0

    def _chunk(self, indices: list[int]) -> dict[str, Any]:
        if not self._stored:
            return {"record": [self.source.data(index) for index in indices]}
        samples = [self.source[index] for index in indices]
        images = [np.ascontiguousarray(sample.inputs["image"]) for sample in samples]
        names = [(sample.meta or {}).get("name", "") for sample in samples]
        return {
            "image": [image.tobytes() for image in images],
            "shape": np.array([image.shape for image in images], np.int32),
            "label": np.array([sample.targets["label"] for sample in samples], np.int64),
            "name": [name.encode(errors="surrogateescape") for name in names],
        }

    def _parse(self, chunk: Any) -> Any:
        params = self.source.params
        kinds = {params.image_key: tf.string, params.label_key: tf.int64}
        if "name" in self.source.structure:
            kinds["name"] = tf.string
        features = {name: tf.io.FixedLenFeature([], kind) for name, kind in kinds.items()}
        parsed = tf.io.parse_example(chunk["record"], features)
        rest = {name: value for name, value in chunk.items() if name != "record"}
        named = {"name": parsed["name"]} if "name" in parsed else {}
        label, numbers = parsed[params.label_key], self.source.label_numbers
        if numbers is not None:
            label = tf.gather(tf.constant(numbers, tf.int64), label)
        return {**rest, **named, "image": parsed[params.image_key], "label": label}

    def _made(self, element: Any) -> Any:
        """A sample of the batch: decoded (only the part that is needed), and changed by what runs on each image."""
        real, shape = element.pop("real"), element.pop("shape", None)
        u = tensors.uniforms(element.pop("key"), self._operations.draws)

        def image() -> Any:
            if shape is None:
                return self._image(element["image"], u)
            whole = tf.reshape(tf.io.decode_raw(element["image"], tf.uint8), shape)
            return self._operations.apply(tensors, self._sized(whole), u, last=self._single)

        between = self._between
        made = tf.cond(real, image, lambda: tf.zeros(between.shape, between.dtype))
        return {**element, "image": tf.ensure_shape(made, between.shape), "u": u}

    def _image(self, data: Any, u: Any) -> Any:
        operations = self._operations
        channels: Any = self._spec.shape[2]
        first = operations.operations[0]
        if not isinstance(first, Cropping):
            whole = self._sized(_with_channels(_decode(data), channels))
            return operations.apply(tensors, whole, u, last=self._single)
        part = _with_channels(_decode_part(data, first, u[: first.draws]), channels)
        return operations.apply(tensors, first.after(tensors, part), u, 1, self._single)

    def _sized(self, image: Any) -> Any:
        return tf.ensure_shape(image, (*self._size, self._spec.shape[2]))

    def _finished(self, element: Any) -> Any:
        """A batch after the operations that run on all of its images at once."""
        u = tf.transpose(element.pop("u"))[..., None, None, None]
        images = self._operations.apply(tensors, element["image"], u, first=self._single)
        shape = (images.shape[0], *self._spec.shape)
        return {**element, "image": tf.ensure_shape(tf.cast(images, self._spec.dtype.name), shape)}


def single_images(operations: OperationList, shape: tuple[int | None, ...]) -> tuple[int, Any]:
    """How many operations have to run on each image, and what they leave to those that run on whole batches.

    An operation runs on each image if sizes may differ before it, or if it or a later one is slower on whole batches.
    """
    with tf.Graph().as_default():
        images = [tf.compat.v1.placeholder(tf.uint8, shape)]
        for operation, drawn in operations.steps(tf.zeros([operations.draws], tf.float64)):
            images.append(operation.apply(tensors, images[-1], drawn))
    specs = [tf.TensorSpec(image.shape, image.dtype) for image in images]
    single = len(operations.operations)
    while single and None not in specs[single - 1].shape:
        before, after, operation = specs[single - 1], specs[single], operations.operations[single - 1]
        nothing = isinstance(operation, Resize) and before.shape == after.shape
        if math.prod(before.shape[:2]) > operation.whole_batch and not nothing:
            break
        single -= 1
    return single, specs[single]


def failed(error: Any, cursor: Cursor) -> DataError:
    return DataError(f"tf.data failed at {cursor}: {str(error.message).splitlines()[0]}")


def training_device() -> str | None:
    """The one GPU that a training uses, so that batches are copied to it ahead of time; None without, or with several."""
    found = tf.config.list_logical_devices("GPU")
    return found[0].name if len(found) == 1 else None


def _decode(data: Any) -> Any:
    """JPEG or PNG in colour, with the values that Pillow gives."""

    def jpeg() -> Any:
        return tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")

    image = tf.cond(tf.io.is_jpeg(data), jpeg, lambda: tf.io.decode_png(data, channels=3))
    return tf.ensure_shape(image, (None, None, 3))


def _decode_part(data: Any, operation: Cropping[Any], u: Any) -> Any:
    """The part that the first operation cuts out; the rest of a JPEG is not decoded."""

    def jpeg() -> Any:
        shape = tf.io.extract_jpeg_shape(data)
        return decode_jpeg_part(data, operation.box(tensors, shape[0], shape[1], u), shape[1])

    def png() -> Any:
        image = tf.ensure_shape(tf.io.decode_png(data, channels=3), (None, None, 3))
        height, width = tensors.size(image)
        return tensors.crop(image, *operation.box(tensors, height, width, u))

    return tf.ensure_shape(tf.cond(tf.io.is_jpeg(data), jpeg, png), (None, None, 3))


def _with_channels(image: Any, channels: int) -> Any:
    """The image in colour, or in grey by Pillow's whole-number weights."""
    if channels == 3:
        return image
    weighted = tf.cast(image, tf.int32) * tf.constant([19595, 38470, 7471])
    grey = tf.bitwise.right_shift(tf.reduce_sum(weighted, -1, keepdims=True) + 0x8000, 16)
    return tf.cast(grey, tf.uint8)


def decode_jpeg_part(data: Any, box: Any, full_width: Any) -> Any:
    """A part of a JPEG with exactly the values that it has in the whole image.

    Colours are interpolated from the neighbouring columns, which libjpeg does not have at the edge of a part: so two more
    are decoded on either side and cut off again.
    """
    top, left, height, width = (tf.cast(value, tf.int32) for value in box)
    start = tf.maximum(left - _MARGIN, 0)
    stop = tf.minimum(left + width + _MARGIN, full_width)
    wider = tf.stack([top, start, height, stop - start])
    image = tf.image.decode_and_crop_jpeg(data, wider, channels=3, dct_method="INTEGER_ACCURATE")
    return tf.slice(image, tf.stack([0, left - start, 0]), tf.stack([height, width, 3]))
