"""Transformations of batches in TensorFlow: what a data class does in `tf_transform`, between the pipeline and the model.

The pipeline itself keeps running in the thread that asks for batches (its worker processes belong to that thread); one
more thread drives tf.data. TensorFlow is imported when it is used.
"""

import logging
import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np

from scena.data.engines.in_process import Engine
from scena.data.params import PipelineMode
from scena.data.sample import Batch, Cursor
from scena.data.spec import ArraySpec
from scena.data.stages.rng import epoch_random
from scena.data.tensorflow.dataset import same_elements, tensor_specs
from scena.errors import DataError

logger = logging.getLogger("scena.data")

AHEAD = 4
"""Batches that wait on either side of tf.data."""
CHECKED = 2
"""Batches that are transformed twice before a restart, to see whether they come out the same."""
_SEED = (1 << 40) + 3
REPLAYED = "tf_transform"
Specs = dict[str, ArraySpec]


class Transformation:
    """The `tf_transform` of a data class for one pipeline; `before` are the specs of inputs and targets as the pipeline makes them."""

    def __init__(self, data: Any, mode: PipelineMode, before: tuple[Specs, Specs], seed: int) -> None:
        self._data = data
        self._mode = mode
        self._seed = seed
        self._before = before
        self._after = (data.input_layer_specs(), data.target_layer_specs())

    def dataset(self, feed: Any, count: int | None = None) -> Any:
        """The transformed dataset of what `feed()` yields; raises DataError if the model does not take it."""
        import tensorflow as tf

        inputs, targets = (tensor_specs(specs) for specs in self._before)
        signature = {
            "inputs": inputs if self._mode.has_inputs else {},
            "targets": targets if self._mode.has_targets else {},
            "batch": tf.TensorSpec((), tf.int64),
            "seed": tf.TensorSpec((2,), tf.int64),
        }
        fed = tf.data.Dataset.from_generator(feed, output_signature=signature)
        if count is not None:
            fed = fed.apply(tf.data.experimental.assert_cardinality(count))
        made = self._data.tf_transform(fed, self._mode)
        self._check(made)
        return made

    def count(self, batches: int) -> int | None:
        """The number of batches that come of this many, None where only making them shows it."""
        known = int(self.dataset(lambda: iter(()), batches).cardinality())
        return known if known >= 0 else None

    def keeps_numbers(self, dataset: Any) -> bool:
        """Whether each element says which batch it was made of."""
        return "batch" in dataset.element_spec

    def element(self, batch: Batch) -> dict[str, Any]:
        """A batch as the element that `tf_transform` gets."""
        number = batch.cursor.batch - 1
        random = epoch_random(self._seed, batch.epoch, _SEED, number)
        seed = random.integers(0, 2**62, 2)
        return {"inputs": batch.inputs, "targets": batch.targets, "batch": np.int64(number), "seed": seed}

    def check_restart(self, first: list[Batch], cursor: Cursor) -> None:
        """Raises if `tf_transform` is not deterministic, or makes a batch differently without the batches before it."""
        whole, again = self._made(first), self._made(first)
        same = same_elements(whole, again)
        if same and self.keeps_numbers(self.dataset(lambda: iter(()))):
            alone = self._made(first[1:])
            numbers = {int(element["batch"]) for element in alone}
            same = same_elements([element for element in whole if int(element["batch"]) in numbers], alone)
        if not same:
            raise DataError(
                f"{type(self._data).__name__}.tf_transform gives something else each time, so that a training cannot resume "
                f"exactly after batch {cursor.batch} of epoch {cursor.epoch}. Draw random numbers with "
                "tf.random.stateless_… and the element's 'seed', give shuffle() a seed, and keep map() deterministic."
            )

    def _made(self, batches: list[Batch]) -> list[Any]:
        return list(self.dataset(lambda: map(self.element, batches)).as_numpy_iterator())

    def _check(self, dataset: Any) -> None:
        name, spec = type(self._data).__name__, dataset.element_spec
        if not isinstance(spec, dict) or not {"inputs", "targets"} <= set(spec):
            raise DataError(
                f"{name}.tf_transform must return a dataset of dicts with 'inputs' and 'targets', and 'batch' where it keeps "
                f"the batches apart; for example dataset.map(lambda element: {{**element, 'inputs': …}}). Received: {spec}"
            )
        present = (self._mode.has_inputs, self._mode.has_targets)
        for part, wanted, used in zip(("inputs", "targets"), self._after, present, strict=True):
            expected = tensor_specs(wanted) if used else {}
            if set(spec[part]) != set(expected):
                given = f"the {part} {sorted(spec[part])}"
                raise DataError(f"{name}.tf_transform gives {given}; the model takes {sorted(expected)}.")
            for key, one in expected.items():
                got = spec[part][key]
                if got.dtype != one.dtype or not got.shape.is_compatible_with(one.shape):
                    raise DataError(
                        f"{name}.tf_transform gives {key!r} as {got.dtype.name} of shape {got.shape}; the specs of the model "
                        f"say {one.dtype.name} of shape {one.shape}."
                    )


class TransformEngine(Engine):
    """An engine whose batches pass through a transformation."""

    def __init__(self, inner: Engine, transformation: Transformation) -> None:
        self._inner = inner
        self._transformation = transformation

    def batches(self, cursor: Cursor, repeat: bool) -> Generator[Batch, None, None]:
        if cursor.batch:
            with closing(self._inner.batches(Cursor(cursor.epoch), False)) as again:
                self._transformation.check_restart(list(islice(again, CHECKED)), cursor)
        replayed = (cursor.state or {}).get(REPLAYED, 0) if isinstance(cursor.state, dict) else 0
        start = Cursor(cursor.epoch) if replayed else cursor
        if replayed:
            text = "tf_transform regroups batches: those of epoch %d are made again, %d are dropped."
            logger.info(text, cursor.epoch, replayed)
        source = _Epochs(self._inner.batches(start, repeat), start.epoch)
        try:
            while True:
                yield from self._epoch(source, replayed)
                replayed = 0
                if not repeat or not source.next_epoch():
                    return
        finally:
            source.close()

    def close(self) -> None:
        self._inner.close()

    def _epoch(self, source: "_Epochs", skip: int) -> Iterator[Batch]:
        exchange = _Exchange()
        # a new one for each epoch: a shuffle() counts how often it was iterated, which a restart does not know
        dataset = self._transformation.dataset(exchange.feed)
        keeps = self._transformation.keeps_numbers(dataset)
        thread = threading.Thread(target=exchange.run, args=(dataset,), name="scena-tf-transform", daemon=True)
        thread.start()
        known: dict[int, Batch] = {}
        count = samples = 0
        last = -1
        try:
            while True:
                while exchange.wants():
                    batch = source.take()
                    if batch is not None:
                        known[batch.cursor.batch - 1] = batch
                    exchange.put(None if batch is None else self._transformation.element(batch))
                element = exchange.take()
                if element is None:
                    return
                count += 1
                if keeps:
                    number = int(element["batch"])
                    if number <= last:
                        raise DataError(
                            f"tf_transform gives batch {number} after batch {last}: it changes their order. Remove 'batch' from its "
                            "elements, so that a restart makes the epoch's batches again."
                        )
                    last = number
                    made = _batch(element, known[number].cursor, known[number].meta)
                    for old in [key for key in known if key <= number]:
                        del known[old]
                else:
                    known.clear()
                    size = len(next(iter((element["inputs"] or element["targets"]).values())))
                    samples += size
                    made = _batch(element, Cursor(source.epoch, count, samples, {REPLAYED: count}), [])
                if count > skip:
                    yield made
        finally:
            exchange.cancel()
            thread.join()


def _batch(element: Any, cursor: Cursor, meta: list[Any]) -> Batch:
    inputs, targets = element["inputs"], element["targets"]
    size = len(next(iter((inputs or targets).values())))
    return Batch(inputs, targets, meta if len(meta) == size else [None] * size, size, cursor)


class _Epochs:
    """Batches of a stream, epoch by epoch."""

    def __init__(self, batches: Any, epoch: int) -> None:
        self._batches = batches
        self._held: Batch | None = None
        self.epoch = epoch

    def take(self) -> Batch | None:
        """The next batch, None at the end of the epoch."""
        batch = self._held or next(self._batches, None)
        self._held = None
        if batch is not None and batch.epoch != self.epoch:
            self._held, batch = batch, None
        return batch

    def next_epoch(self) -> bool:
        """Continues with the next epoch, if there is one."""
        if self._held is None:
            return False
        self.epoch = self._held.epoch
        return True

    def close(self) -> None:
        self._batches.close()


class _Exchange:
    """Hands elements to the thread of tf.data and takes what it makes of them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._in: deque[Any] = deque()
        self._out: deque[Any] = deque()
        self._fed = self._cancelled = False

    def wants(self) -> bool:
        """Waits until there is a result or capacity for an element; True if it is capacity."""
        with self._changed:
            self._changed.wait_for(lambda: self._out or (len(self._in) < AHEAD and not self._fed))
            return not self._out

    def put(self, element: Any) -> None:
        """Hands an element over; None is the end."""
        with self._changed:
            self._in.append(element)
            self._fed = element is None
            self._changed.notify_all()

    def take(self) -> Any:
        """The next result, None at the end. Raises what tf.data raised."""
        with self._changed:
            result = self._out.popleft()
            self._changed.notify_all()
        if isinstance(result, BaseException):
            raise result
        return result

    def cancel(self) -> None:
        """Ends both sides."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()

    def feed(self) -> Iterator[Any]:
        """The elements, for tf.data."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._in or self._cancelled)
                if self._cancelled:
                    return
                element = self._in.popleft()
                self._changed.notify_all()
            if element is None:
                return
            yield element

    def run(self, dataset: Any) -> None:
        """Iterates the dataset, in a thread of its own."""
        try:
            for element in dataset.as_numpy_iterator():
                if not self._give(element):
                    return
            self._give(None)
        except Exception as error:
            text = str(getattr(error, "message", error)).strip()
            failure = DataError(f"tf_transform failed: {text.splitlines()[0] if text else type(error).__name__}")
            failure.__cause__ = error
            self._give(failure)

    def _give(self, result: Any) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: len(self._out) < AHEAD or self._cancelled)
            self._out.append(result)
            self._changed.notify_all()
            return not self._cancelled
