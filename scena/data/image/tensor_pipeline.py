"""Batches of image records made by tf.data: the same batches, cursor and order as those of the Python pipeline.

Records are read by index, a chunk at a time, so that shuffling is complete and resuming starts at the next sample;
parsing, decoding, augmentation and batching run in TensorFlow's threads. This module needs TensorFlow.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from scena.data.batch import Batch
from scena.data.collate import Collator
from scena.data.cursor import Cursor
from scena.data.datasets.image_records import ImageRecords
from scena.data.errors import DataError
from scena.data.generator import as_generator
from scena.data.image.augment import tensors
from scena.data.image.augment.operations import Cropping, OperationList
from scena.data.image.augment.params import AugmentParams, ImagePipelineParams
from scena.data.image.augment.random import keys_of
from scena.data.inprocess import InProcessEngine, empty
from scena.data.modes import PipelineMode
from scena.data.pipeline import DataPipeline
from scena.data.work import Work
from scena.params.errors import ParamsError

if TYPE_CHECKING:
    from scena.data.image.database import ImageData

_MARGIN = 2
CHUNK = 64
"""Records that are read at a time: few enough to be ready soon, enough to make the calls into Python cheap."""


def create_tensor_pipeline(data: "ImageData[Any]", mode: PipelineMode, params: ImagePipelineParams, source: Any,
                           seed: int) -> DataPipeline:  # fmt: skip
    """The pipeline of `engine=tf.data`; raises ParamsError for what only the Python pipeline can do."""
    generator = as_generator(source, mode)
    if not isinstance(generator, ImageRecords):
        raise ParamsError(
            f"engine=tf.data reads image records (ImageRecords). Received: {type(generator).__name__}; write records with "
            "`scena records write` or `convert`, or use engine=python."
        )
    if any(True for _ in data.params.pre_proc):
        raise ParamsError("engine=tf.data does not run processors in Python (pre_proc): use engine=python.")
    if params.bucket_boundaries or params.on_error != "raise":
        raise ParamsError("engine=tf.data has no buckets and no on_error=skip: use engine=python.")
    collator = Collator(data.input_layer_specs(), data.target_layer_specs(), data.padding_values(), mode)
    return TensorImagePipeline(
        mode,
        params,
        source,
        data_params=data.params,
        processors=data.processors(params),
        collator=collator,
        seed=seed,
        generator=generator,
    )


class TensorImagePipeline(DataPipeline):
    """A pipeline whose batches tf.data makes."""

    def _new_engine(self) -> Any:
        return TensorEngine(self._work)


class TensorEngine:
    """Yields batches from a cursor on, epoch after epoch."""

    def __init__(self, work: Work) -> None:
        assert isinstance(work.generator, ImageRecords)
        self.work = work
        self.source: ImageRecords = work.generator
        processors = list(work.processors)
        self._processor = len(processors)
        augment = processors[-1]
        assert isinstance(augment, AugmentParams)
        self._operations = OperationList(augment.operations)
        self._epoch = self._start = 0
        self._dataset: Any = None

    def batches(self, cursor: Cursor, repeat: bool) -> Iterator[Batch]:
        """The batches from `cursor` on; of one epoch only unless `repeat`."""
        while True:
            count = 0
            for batch in self._epoch_batches(cursor):
                count += 1
                yield batch
            if not count and not cursor.batch:
                raise empty(self.work)
            if not repeat:
                return
            cursor = Cursor(cursor.epoch + 1)

    def close(self) -> None:
        """Nothing is kept."""

    def _epoch_batches(self, cursor: Cursor) -> Iterator[Batch]:
        self._epoch, self._start = cursor.epoch, cursor.samples
        self.work.order(cursor.epoch)
        if self._dataset is None:
            self._dataset = self._build()
        number, samples = cursor.batch, cursor.samples
        elements = iter(self._dataset)
        while True:
            try:
                element = next(elements)
            except StopIteration:
                return
            except tf.errors.OpError as error:
                raise self._explained(error, Cursor(cursor.epoch, number, samples)) from error
            size = int(element["size"].shape[0])
            number, samples = number + 1, samples + size
            inputs = {"image": element["image"].numpy()} if self.work.mode.has_inputs else {}
            targets = {"label": element["label"].numpy()} if self.work.mode.has_targets else {}
            meta: list[Any] = [None] * size
            if "name" in element:
                meta = [{"name": name.decode(errors="replace")} for name in element["name"].numpy()]
            yield Batch(inputs, targets, meta, size, Cursor(cursor.epoch, number, samples))

    def _explained(self, error: Any, cursor: Cursor) -> DataError:
        """Looks for the sample that failed by making the batch in Python, which names it."""
        try:
            next(iter(InProcessEngine(self.work).batches(cursor, False)), None)
        except DataError as known:
            return known
        return DataError(f"tf.data failed at {cursor}: {str(error.message).splitlines()[0]}")

    def _build(self) -> Any:
        params, spec = self.work.pipeline, self.work.collator.inputs["image"]
        chunks = tf.data.Dataset.from_generator(
            self._chunks,
            output_signature={"record": tf.TensorSpec([None], tf.string), "key": tf.TensorSpec([None], tf.uint64)},
        )
        dataset = chunks.map(self._parse).unbatch()
        dataset = dataset.map(
            lambda element: self._made(element, spec), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        dataset = dataset.batch(params.batch_size, drop_remainder=params.batch_drop_remainder)
        options = tf.data.Options()
        options.deterministic = True
        return dataset.prefetch(min(params.prefetch, 8)).with_options(options)

    def _chunks(self) -> Iterator[dict[str, Any]]:
        """Records of the epoch from the start on, with the random key of each."""
        epoch, order = self._epoch, self.work.order(self._epoch)
        for first in range(self._start, len(order), CHUNK):
            ordinals = range(first, min(first + CHUNK, len(order)))
            records = [self.source.data(int(order[ordinal])) for ordinal in ordinals]
            yield {"record": records, "key": keys_of(self.work.seed, epoch, ordinals, self._processor)}

    def _parse(self, chunk: Any) -> Any:
        params = self.source.params
        features = {
            params.image_key: tf.io.FixedLenFeature([], tf.string),
            params.label_key: tf.io.FixedLenFeature([], tf.int64),
        }
        structure = next(iter(self.source.sets.values())).schema.structure
        if "name" in structure:
            features["name"] = tf.io.FixedLenFeature([], tf.string)
        parsed = tf.io.parse_example(chunk["record"], features)
        named = {"name": parsed["name"]} if "name" in parsed else {}
        return {"image": parsed[params.image_key], "label": parsed[params.label_key], "key": chunk["key"], **named}

    def _made(self, element: Any, spec: Any) -> Any:
        """A sample of the batch: decoded (only the part that is needed) and augmented."""
        height, width, channels = spec.shape
        operations = self._operations
        u = tensors.uniforms(element.pop("key"), operations.draws)
        first = operations.operations[0]
        if isinstance(first, Cropping):
            image = _with_channels(_decode_part(element["image"], first, u[: first.draws]), channels)
            image = operations.apply(tensors, first.after(tensors, image), u, skip=1)
        else:
            image = operations.apply(tensors, _with_channels(_decode(element["image"]), channels), u)
        element["image"] = tf.ensure_shape(tf.cast(image, spec.dtype.name), (height, width, channels))
        element["size"] = tf.zeros([], tf.int8)
        return element


def _decode(data: Any) -> Any:
    """JPEG or PNG in colour, with the values that Pillow gives."""
    image = tf.cond(
        tf.io.is_jpeg(data),
        lambda: tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE"),
        lambda: tf.io.decode_png(data, channels=3),
    )
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
