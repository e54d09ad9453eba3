"""A pipeline of one source in one mode: streams of batches with a position, and samples for debugging."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from scena.data.batch import Batch, Cursor
from scena.data.engines.base import Engine
from scena.data.engines.cached_prefix import Progress, stored
from scena.data.engines.in_process import InProcessEngine
from scena.data.errors import DataError
from scena.data.generator import DataGenerator, is_one_shot
from scena.data.params import DataBaseParams, DataPipelineParams, DataProcessorPipelineParams, PipelineMode
from scena.data.repeatability import changing_part, same_samples
from scena.data.sample import Sample
from scena.data.stages.collate import Collator
from scena.data.stages.context import PipelineContext
from scena.data.stages.feed import Shard, cut
from scena.plugins import find

if TYPE_CHECKING:
    from scena.data.benchmark import Clock

logger = logging.getLogger("scena.data")

BLOCK_SECONDS = 0.1


class BatchStream:
    """Batches in order. `cursor` is the position after the last batch that was handed out. Close it, or use `with`."""

    def __init__(
        self, context: PipelineContext, batches: Iterator[Batch], cursor: Cursor, closed: Callable[[], None]
    ) -> None:
        self._context = context
        self._skipped_before = len(context.skipped.identities) if context.skipped else 0
        self._batches = batches
        self._closed: Callable[[], None] | None = closed
        self._ahead: deque[Batch] = deque()
        self._thread: ThreadPoolExecutor | None = None
        self._making: Future[None] | None = None
        self._failure: Exception | None = None
        self.cursor = cursor

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        if not self._available():
            raise self._failure or StopIteration
        batch = self._ahead.popleft()
        self.cursor = batch.cursor
        return batch

    def take_block(self, max_batches: int) -> list[Batch]:
        """Up to `max_batches` consecutive batches of one epoch with equal shapes; an empty list at the end.

        It waits for one batch, and then no longer than a moment for more: a slow pipeline gives short blocks. An error is raised after
        the batches that were made before it.
        """
        block: list[Batch] = []
        deadline = time.monotonic() + BLOCK_SECONDS
        while len(block) < max_batches and (not block or time.monotonic() < deadline) and self._available():
            if block and (self._ahead[0].shapes() != block[0].shapes() or self._ahead[0].epoch != block[0].epoch):
                break
            block.append(next(self))
        if not block and self._failure is not None:
            raise self._failure
        return block

    def make_ahead(self, batches: int) -> None:
        """Makes the next batches in a thread while the caller computes.

        Not with a fixed number of processes: workers are ahead anyway, and without any a debugger is to find all in one thread.
        """
        if self._context.pipeline.num_processes is None and self._making is None:
            self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="scena-batches")
            self._making = self._thread.submit(self._make, batches)

    def _available(self) -> bool:
        """Whether there is a batch, if need be after making it."""
        if self._making is not None:
            self._making.result()
            self._making = None
        if not self._ahead and self._failure is None:
            self._make(1)
        return bool(self._ahead)

    def _make(self, batches: int) -> None:
        deadline = time.monotonic() + BLOCK_SECONDS
        try:
            while len(self._ahead) < batches and time.monotonic() < deadline:
                self._ahead.append(next(self._batches))
        except StopIteration:
            pass
        except Exception as error:
            self._failure = error

    @property
    def skipped(self) -> list[str]:
        """What was left out because of errors (on_error=skip), one line per sample."""
        return self._context.skipped.identities[self._skipped_before :] if self._context.skipped else []

    def close(self) -> None:
        """Ends the stream and frees what it holds."""
        if self._closed is not None:
            if self._thread is not None:
                self._thread.shutdown()
            self._ahead.clear()
            self._batches.close()  # type: ignore[attr-defined]
            self._closed()
            self._closed = None
            if count := len(self.skipped):
                which = "sample was" if count == 1 else "samples were"
                mode = self._context.mode.value
                logger.warning("%d %s left out of the %s data because of errors (on_error=skip).", count, which, mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class DataPipeline:
    """Turns the samples of one source into batches. Order and content depend on (seed, epoch, index) only."""

    def __init__(
        self,
        mode: PipelineMode,
        params: DataPipelineParams,
        source: Any,
        *,
        data_params: DataBaseParams,
        processors: DataProcessorPipelineParams,
        collator: Collator,
        seed: int = 0,
        generator: DataGenerator[Any] | None = None,
    ) -> None:
        self.mode = mode
        self.params = params
        self.source = source
        self.seed = seed
        self._context = PipelineContext(
            mode=mode,
            pipeline=params,
            data=data_params,
            processors=processors,
            collator=collator,
            seed=seed,
            source=source,
            generator=generator,
        )
        self._idle: list[Any] = []
        self._prepared = False
        self._shard: Shard | None = None
        self.transformation: Any = None
        """What the data class does to batches in TensorFlow (scena/data/tensorflow/transform.py), if it does something."""
        self.change_batch: Callable[[Batch], Batch] | None = None
        """Applied to each batch in this process, for what concerns batches as a whole; `batch.epoch` is the pass over the data."""

    @property
    def interleaved(self) -> bool:
        """Whether records are read file by file, in an order of its own."""
        return self.params.engine == "tf.data.interleave"

    @property
    def collator(self) -> Collator:
        """The specs and padding values of the batches."""
        return self._context.collator

    def indices(self, epoch: int = 0) -> Sequence[int] | None:
        """The indices of an epoch's samples in their order, None for a stream."""
        return self._context.order(epoch) if self._context.random_access else None

    def samples_per_epoch(self) -> int | None:
        """The number of samples of an epoch before generating processors, None if the source does not know."""
        generator: Any = self._context.generator
        if self._context.random_access:
            return len(self._context.order(0))
        try:
            count = len(generator)
        except TypeError:  # it has no length, or does not know it
            return None
        return min(count, self.params.limit) if self.params.limit else count

    def batches_per_epoch(self) -> int | None:
        """The number of batches of an epoch, None where it is only known at its end."""
        stages = self._context.stages
        count = self.samples_per_epoch()
        if count is None or self.params.bucket_boundaries or any(stage.generating for stage in stages):
            return None
        size = stages[-1].out_chunk_size
        batches = count // size if self.params.batch_drop_remainder else -(-count // size)
        return batches if self.transformation is None else self.transformation.count(batches)

    def stream(self, cursor: Cursor | None = None, *, repeat: bool | None = None) -> BatchStream:
        """Batches from `cursor` on. `repeat` goes on with the next epoch; default: in training only."""
        self.prepare()
        cursor = cursor or Cursor()
        repeat = self.mode is PipelineMode.TRAINING if repeat is None else repeat
        if cursor.samples and self._context.generator is not None:
            self._context.generator.check_restart(cursor.epoch, cursor.samples)
        if isinstance(cursor.state, dict) and "interleaved" in cursor.state and not self.interleaved:
            raise DataError(
                f"The position within epoch {cursor.epoch} is one of --train.engine tf.data.interleave: keep that engine, or go on "
                "from the end of an epoch."
            )
        whole = self.change_batch is not None or self.transformation is not None
        by_index = self._context.can_shard and self.params.engine == "python"
        divided = self._shard is not None and by_index and not whole
        self._context.shard = self._shard if divided else None
        engine = self._idle.pop() if self._idle else self._transformed_engine()
        batches = engine.batches(cursor, repeat)
        if self.change_batch is not None:
            batches = _changed(batches, self.change_batch)
        if self._shard is not None and not divided:
            batches = cut(batches, self._shard)
        return BatchStream(self._context, batches, cursor, lambda: self._idle.append(engine))

    def peek(self, batches: int, batch_size: int | None = None) -> list[Batch]:
        """The first batches, made apart from all streams: in this process, without preloading, and without making more.

        A source that can be read only once is left alone: there are none then.

        Args:
            batches: how many at most.
            batch_size: make smaller batches than the pipeline's, if that is possible.
        """
        if is_one_shot(self._context.generator):
            return []
        context = self._context.small(batch_size)
        engine: Any = InProcessEngine(context)
        if self.transformation is not None:
            from scena.data.tensorflow.transform import TransformEngine

            engine = TransformEngine(engine, self.transformation)
        made = engine.batches(Cursor(), repeat=False)
        if self.change_batch is not None:
            made = _changed(made, self.change_batch)
        with closing(made):
            return list(islice(made, batches))

    def changing_part(self) -> tuple[str, str] | None:
        """The source or processor that makes a sample differently the second time, and the sample."""
        return changing_part(self._context)

    def has_samples_of(self, other: "DataPipeline") -> bool:
        """Whether both sources have the same samples, judged by a few of them."""
        return same_samples(self._context, other._context)

    def shard(self, index: int, count: int) -> None:
        """Makes the streams give one of `count` equal parts of each batch: several processes train together.

        Where samples are read by their index, nothing else is made. Other pipelines, such as a stream without random access,
        make whole batches and keep the part of them. Cursors are those of whole batches, the same in every process.
        """
        self._shard = Shard(index, count)
        if not self._context.can_shard:
            logger.info(
                "The %s data cannot be divided by the index of samples: each process makes all of it and keeps its part.",
                self.mode.value,
            )

    @property
    def keeps_samples(self) -> bool:
        """Whether the beginning of the pipeline runs only once, and its samples are kept in memory or on disk."""
        return self.params.preload or self.params.cache_dir is not None

    def prepare(self, progress: Progress | None = None) -> None:
        """Does what is done once: preloading, or filling the cache. Otherwise the first stream does it."""
        if not self._prepared and self.params.limit and not self._context.random_access and self.mode.has_targets:
            source = type(self._context.generator).__name__
            logger.info("%s is a stream, of which the limit takes the first %d samples.", source, self.params.limit)
        if self.keeps_samples and not self._prepared:
            self._context = stored(self._context, progress)
        self._prepared = True

    def _transformed_engine(self) -> Engine:
        if self.transformation is None:
            return self._new_engine()
        from scena.data.tensorflow.transform import TransformEngine

        return TransformEngine(self._new_engine(), self.transformation)

    def _new_engine(self) -> Engine:
        engine: Engine = find("Engine", self.params.engine)(self._context)
        return engine

    def close(self) -> None:
        """Ends worker processes that are kept for the next stream. They also end with the pipeline and with the program."""
        while self._idle:
            self._idle.pop().close()

    def timed_context(self, clock: "Clock") -> PipelineContext:
        """The same pipeline for one process, measured by `clock`."""
        context = self._context.copy()
        context.clock = clock
        return context

    @contextmanager
    def generate_input_samples(self, auto_repeat: bool | None = None) -> Iterator[Iterator[Sample]]:
        """For debugging: single samples as they are right before batching, made in this process."""
        repeat = self.mode is PipelineMode.TRAINING if auto_repeat is None else auto_repeat
        yield (
            sample for chunk, _ in InProcessEngine(self._context).chunks(Cursor(), repeat) for sample in chunk.samples
        )

    @contextmanager
    def generate_input_batches(self, auto_repeat: bool | None = None) -> Iterator[BatchStream]:
        """For debugging: the batches as the model gets them."""
        with self.stream(repeat=auto_repeat) as stream:
            yield stream


def _changed(batches: Iterator[Batch], change: Callable[[Batch], Batch]) -> Iterator[Batch]:
    with closing(batches):  # type: ignore[type-var]
        for batch in batches:
            yield change(batch)
