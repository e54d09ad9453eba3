"""Image records read file by file inside of TensorFlow: several files at a time, shuffled within a buffer.

No Python runs for a batch, so that a tf.data service can do the work elsewhere. Order and random numbers depend on seed,
epoch and index only; a position is restored by reading, without decoding, what comes before it.
"""

import logging
import queue
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from scena.data.params import PipelineMode
from scena.data.sample import Cursor
from scena.data.stages.context import PipelineContext
from scena.data.tensorflow.augment_ops import sample_keys
from scena.data.tensorflow.image_pipeline import TensorEngine, failed
from scena.data.tensorflow.records import tensorflow_opens
from scena.errors import DataError, ParamsError

logger = logging.getLogger("scena.data")

FILES_AT_A_TIME = 8
"""Part of the order, so it is the same on every machine."""
BUFFER_BYTES = 1 << 28
_ORDER = (1 << 40) + 4
STATE = "interleaved"


class InterleavedEngine(TensorEngine):
    """Yields batches from a cursor on, epoch after epoch."""

    def __init__(self, context: PipelineContext) -> None:
        super().__init__(context)
        self._service: str | None = getattr(context.pipeline, "data_service", None)
        self._shuffled = context.mode is PipelineMode.TRAINING and context.pipeline.shuffle_buffer_size != 0
        self._files, self._mask = self._chosen()
        self._buffer = context.pipeline.shuffle_buffer_size or self._automatic_buffer()
        self._cycle = min(FILES_AT_A_TIME, len(self._files)) if self._shuffled else 1

    @property
    def state(self) -> dict[str, list[int]] | None:
        return {STATE: [self._cycle, self._buffer]} if self._shuffled else None

    def _check(self, cursor: Cursor) -> None:
        if not cursor.samples:
            return
        if (cursor.state or None) != self.state:
            raise DataError(
                f"The position within epoch {cursor.epoch} was taken with another order of reading ({cursor.state}; this pipeline "
                f"has {self.state}): keep --train.engine and --train.shuffle_buffer_size, or resume from the end of an epoch."
            )
        text = "Resuming reads past %d records of epoch %d; they are not decoded again."
        logger.info(text, cursor.samples, cursor.epoch)

    def _explained(self, error: Any, cursor: Cursor) -> DataError:
        return failed(error, cursor)  # other engines have another order, so none of them can name the sample

    def _elements(self, cursor: Cursor, repeat: bool) -> Iterator[Any]:
        self._check(cursor)
        chunks = self._chunks(cursor.epoch, cursor.samples)
        if self._service is None:
            made = self._decoded(chunks)
            elements: Iterator[Any] = iter(made if repeat else made.take(len(self._sizes) - cursor.batch))
            return elements
        from scena.data.tensorflow.interleaved import served

        def decode(numbered: Any) -> Any:
            return self._decoded(numbered, options=False)

        return served(chunks, decode, self._service)

    def _chosen(self) -> tuple[list[Any], Any]:
        """(file, compression, number of its first record) for each file, and which records are used; None: all."""
        files, masks, first = [], [], 0
        for split, indices in self.source.parts:
            records = self.source.sets[split]
            mask = np.zeros(len(records), bool)
            mask[indices] = True
            if len(indices) != int(mask.sum()):
                raise ParamsError("tf.data.interleave cannot read a record twice in an epoch: use engine=tf.data.")
            start = 0
            for file in records.files:
                if not tensorflow_opens(file.path):
                    raise ParamsError(f"TensorFlow does not open {str(file.path)!r}: use --train.engine tf.data.")
                if mask[start : start + len(file)].any():
                    path = file.path.absolute() if hasattr(file.path, "absolute") else file.path
                    files.append((str(path), file.compression, first + start))
                start += len(file)
            masks.append(mask)
            first += len(records)
        used = np.concatenate(masks)
        limited = np.zeros(len(used), bool)
        limited[np.flatnonzero(used)[np.asarray(self.context.chosen())]] = True
        return files, None if limited.all() else limited

    def _automatic_buffer(self) -> int:
        files = [file for split, _ in self.source.parts for file in self.source.sets[split].files]
        each = sum(file.size for file in files) / max(1, sum(len(file) for file in files))
        return max(1, min(self._count, int(BUFFER_BYTES / max(each, 1))))

    def _chunks(self, first_epoch: int, skipped: int) -> Any:
        """The records of each batch with the random key of each; a last one is filled up with what is not decoded."""
        size, seed = self.context.pipeline.batch_size, self.context.seed
        count = sum(self._sizes)
        names, kinds, starts = (tf.constant(column) for column in zip(*self._files, strict=True))
        mask = None if self._mask is None else tf.constant(self._mask)

        def one_file(name: Any, kind: Any, start: Any) -> Any:
            records = tf.data.TFRecordDataset(name, compression_type=kind).enumerate(tf.cast(start, tf.int64))
            if mask is not None:
                records = records.filter(lambda index, record: mask[index])
            return records.map(lambda index, record: record)

        def one_epoch(epoch: Any) -> Any:
            order = tf.range(len(self._files))
            if self._shuffled:
                both = tf.stack([tf.constant(seed, tf.int64), epoch])
                order = tf.random.experimental.stateless_shuffle(order, seed=both)
            columns = tuple(tf.gather(column, order) for column in (names, kinds, starts))
            files, cycle = tf.data.Dataset.from_tensor_slices(columns), self._cycle
            records = files.interleave(one_file, cycle, num_parallel_calls=cycle, deterministic=True)
            if self._shuffled:
                drawn = tf.bitcast(sample_keys(seed, epoch, tf.zeros([1], tf.int64), _ORDER)[0], tf.int64)
                records = records.shuffle(self._buffer, seed=drawn, reshuffle_each_iteration=False)
            records = records.take(count).enumerate()
            before = tf.where(epoch == first_epoch, tf.constant(skipped, tf.int64), tf.constant(0, tf.int64))
            records = records.skip(before)
            return records.batch(size).map(lambda index, record: chunk(epoch, index, record))

        def chunk(epoch: Any, index: Any, record: Any) -> Any:
            filled = tf.minimum(tf.range(size), tf.shape(record)[0] - 1)
            keys = sample_keys(seed, epoch, index, self._processor)
            return {
                "record": tf.ensure_shape(tf.gather(record, filled), [size]),
                "key": tf.ensure_shape(tf.gather(keys, filled), [size]),
                "real": tf.range(size) < tf.shape(record)[0],
            }

        return tf.data.Dataset.counter(first_epoch, dtype=tf.int64).flat_map(one_epoch)


WAIT_SECONDS = 60.0
"""After so long without a batch a service counts as gone: TensorFlow itself would wait for hours."""
_AHEAD = 4


def served(chunks: Any, make: Callable[[Any], Any], address: str, wait: float = WAIT_SECONDS) -> Iterator[Any]:
    """What `make` makes of an endless dataset of chunks, one element for each, in order.

    Every worker of the service at `address` reads all chunks, and makes batches of its own ones.
    """
    check_reachable(address)
    service = tf.data.experimental.service
    hint = tf.data.experimental.SHARD_HINT

    def with_number(number: Any, chunk: Any) -> Any:
        return {**chunk, "number": tf.repeat(number, tf.shape(chunk["real"])[0])}

    made = make(chunks.enumerate().map(with_number).shard(hint, hint))
    made = made.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    made = made.apply(
        service.distribute(
            processing_mode=service.ShardingPolicy.HINT,
            service=f"grpc://{address}",
            job_name=f"scena-{uuid.uuid4().hex}",  # a job of its own: nothing of another run's position is shared
            consumer_index=0,
            num_consumers=1,
        )
    )
    return _in_order(_arriving(made, address, wait))


def check_reachable(address: str, timeout: float = 5.0) -> None:
    """Raises DataError if nothing listens at an address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise DataError(f"The address of a data service is host:port, such as localhost:5050. Received: {address!r}.")
    try:
        socket.create_connection((host, int(port)), timeout).close()
    except OSError as error:
        problem = f"There is no data service at {address} ({error.strerror or error})"
        raise DataError(f"{problem}. Start one: scena data-service --port {port}.") from None


def _arriving(dataset: Any, address: str, wait: float) -> Iterator[Any]:
    """The elements as they come, taken by a thread so that waiting for them can end."""
    arrived: queue.Queue[Any] = queue.Queue(_AHEAD)
    ended = threading.Event()

    def put(item: Any) -> None:
        while not ended.is_set():
            try:
                return arrived.put(item, timeout=0.2)
            except queue.Full:
                continue

    def read() -> None:
        try:
            for element in dataset:
                put(element)
                if ended.is_set():
                    return
        except Exception as error:
            put(error)

    threading.Thread(target=read, name="scena-data-service", daemon=True).start()
    try:
        while True:
            try:
                item = arrived.get(timeout=wait)
            except queue.Empty:
                raise DataError(
                    f"The data service at {address} has sent no batch for {wait:.0f} s. Do all of its workers run? "
                    "Start it again, and resume."
                ) from None
            if isinstance(item, Exception):
                text = str(getattr(item, "message", item)).strip() or type(item).__name__
                raise DataError(f"The data service at {address} failed: {text.splitlines()[0]}") from item
            yield item
    finally:
        ended.set()


def _in_order(elements: Iterator[Any]) -> Iterator[Any]:
    """Elements by their number; a round of all workers is all that ever waits."""
    waiting: dict[int, Any] = {}
    following = 0
    try:
        for element in elements:
            waiting[int(element.pop("number")[0])] = element
            while following in waiting:
                yield waiting.pop(following)
                following += 1
    finally:
        elements.close()  # type: ignore[attr-defined]
