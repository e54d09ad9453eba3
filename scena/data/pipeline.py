"""Pipelines: `DataPipeline` turns a source into streams of batches, `SamplePipeline` applies processors to samples."""

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from scena import faults
from scena.data.engines.in_process import Engine, InProcessEngine
from scena.data.engines.parallel import ParallelEngine, samples_of
from scena.data.generator import is_one_shot
from scena.data.params import (
    DataBaseParams,
    DataGeneratorParams,
    DataPipelineParams,
    DataProcessorPipelineParams,
    PipelineMode,
)
from scena.data.repeatability import changing_part, same_samples
from scena.data.sample import Batch, Cursor, Sample
from scena.data.stages.collate import Collator
from scena.data.stages.context import PipelineContext
from scena.data.stages.feed import Shard, cut
from scena.errors import DataError
from scena.plugins import find

if TYPE_CHECKING:
    from scena.data.benchmark import Clock
    from scena.data.engines.cached_prefix import Progress
    from scena.data.tensorflow.transform import Transformation

logger = logging.getLogger("scena.data")

BLOCK_SECONDS = 0.1


class BatchStream:
    """Batches in order. `cursor` is the position after the last batch that was handed out. Close it, or use `with`."""

    def __init__(self, context: PipelineContext, batches: Generator[Batch, None, None], cursor: Cursor,
                 closed: Callable[[], None]) -> None:  # fmt: skip
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
        max_batches = faults.smaller("block", max_batches)
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
        """The samples skipped because of errors (on_error=skip), one line each."""
        return self._context.skipped.identities[self._skipped_before :] if self._context.skipped else []

    def close(self) -> None:
        """Ends the stream and frees what it holds."""
        if self._closed is None:
            return
        if self._thread is not None:
            self._thread.shutdown()
        self._ahead.clear()
        self._batches.close()
        self._closed()
        self._closed = None
        if count := len(self.skipped):
            which, mode = "sample" if count == 1 else "samples", self._context.mode.value
            logger.warning("Skipped %d %s of the %s data because of errors (on_error=skip).", count, which, mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class DataPipeline:
    """Turns the samples of one source into batches. Order and content depend on (seed, epoch, index) only."""

    def __init__(self, context: PipelineContext, transformation: "Transformation | None" = None) -> None:
        self.mode, self.params = context.mode, context.pipeline
        self.source, self.seed = context.source, context.seed
        self._context = context
        self._transformation = transformation
        self._changes: list[Callable[[Batch], Batch]] = []
        self._idle: list[Any] = []
        self._prepared = False
        self._shard: Shard | None = None

    def map_batches(self, change: Callable[[Batch], Batch]) -> None:
        """Applies `change` to each batch in this process; `batch.epoch` is the pass over the data. Call it before the first stream."""
        self._changes.append(change)

    @property
    def interleaved(self) -> bool:
        """Whether records are read file by file, in an order of its own."""
        return self.params.engine == "tf.data.interleave"

    @property
    def collator(self) -> Collator:
        return self._context.collator

    def indices(self, epoch: int = 0) -> Sequence[int] | None:
        """The indices of an epoch's samples in their order, None for a stream."""
        return self._context.order(epoch) if self._context.random_access else None

    @property
    def generator(self) -> Any:
        """What the samples come from."""
        return self._context.generator

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
        return batches if self._transformation is None else self._transformation.count(batches)

    def stream(self, cursor: Cursor | None = None, *, repeat: bool | None = None) -> BatchStream:
        """Batches from `cursor` on. `repeat` continues with the next epoch; default: in training only."""
        self.prepare()
        cursor = cursor or Cursor()
        repeat = self.mode is PipelineMode.TRAINING if repeat is None else repeat
        if cursor.samples and self._context.generator is not None:
            self._context.generator.check_restart(cursor.epoch, cursor.samples)
        if isinstance(cursor.state, dict) and "interleaved" in cursor.state and not self.interleaved:
            where = f"The position within epoch {cursor.epoch} is one of --train.engine tf.data.interleave"
            raise DataError(f"{where}: keep that engine, or resume from the end of an epoch.")
        whole = bool(self._changes) or self._transformation is not None
        by_index = self._context.can_shard and self.params.engine == "python"
        divided = self._shard is not None and by_index and not whole
        self._context.shard = self._shard if divided else None
        create = find("Engine", self.params.engine)
        engine = self._idle.pop() if self._idle else self._transformed(create(self._context))
        batches = self._changed(engine.batches(cursor, repeat))
        if self._shard is not None and not divided:
            batches = cut(batches, self._shard)
        return BatchStream(self._context, batches, cursor, lambda: self._idle.append(engine))

    def peek(self, batches: int, batch_size: int | None = None) -> list[Batch]:
        """At most `batches` first batches, independent of all streams: made in this process, without preloading.

        `batch_size` asks for smaller batches than the pipeline's. A source that can be read only once gives none.
        """
        if is_one_shot(self._context.generator):
            return []
        engine = self._transformed(InProcessEngine(self._context.small(batch_size)))
        with closing(self._changed(engine.batches(Cursor(), repeat=False))) as made:
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
            text = "The %s data cannot be divided by the index of samples: each process makes all of it and keeps its part."
            logger.info(text, self.mode.value)

    @property
    def keeps_samples(self) -> bool:
        """Whether the beginning of the pipeline runs only once, and its samples are cached in memory or on disk."""
        return self.params.preload or self.params.cache_dir is not None

    def prepare(self, progress: "Progress | None" = None) -> None:
        """Preloads the data or fills the cache. Otherwise the first stream does it."""
        if self._prepared:
            return
        if self.params.limit and not self._context.random_access and self.mode.has_targets:
            source = type(self._context.generator).__name__
            logger.info("%s is a stream, of which the limit takes the first %d samples.", source, self.params.limit)
        if self.keeps_samples:
            from scena.data.engines.cached_prefix import stored

            self._context = stored(self._context, progress)
        self._prepared = True

    def _changed(self, batches: Generator[Batch, None, None]) -> Generator[Batch, None, None]:
        with closing(batches):
            for batch in batches:
                for change in self._changes:
                    batch = change(batch)
                yield batch

    def _transformed(self, engine: Engine) -> Engine:
        if self._transformation is None:
            return engine
        from scena.data.tensorflow.transform import TransformEngine

        return TransformEngine(engine, self._transformation)

    def close(self) -> None:
        """Ends worker processes that are kept for the next stream. They also end with the pipeline and with the program."""
        while self._idle:
            self._idle.pop().close()

    def timed_context(self, clock: "Clock") -> PipelineContext:
        """The same pipeline for one process, measured by `clock`."""
        return replace(self._context, clock=clock)

    @contextmanager
    def generate_input_samples(self, auto_repeat: bool | None = None) -> Iterator[Iterator[Sample]]:
        """For debugging: single samples as they are right before batching, made in this process."""
        repeat = self.mode is PipelineMode.TRAINING if auto_repeat is None else auto_repeat
        yield InProcessEngine(self._context).samples(repeat)

    @contextmanager
    def generate_input_batches(self, auto_repeat: bool | None = None) -> Iterator[BatchStream]:
        """For debugging: the batches as the model gets them."""
        with self.stream(repeat=auto_repeat) as stream:
            yield stream


@dataclass(eq=False)
class SamplePipeline:
    """Applies a processor pipeline to samples, in order.

    Example: `params.pre_proc.create(DataPipelineParams(limit=100), params).apply(samples)`
    """

    params: DataProcessorPipelineParams
    pipeline_params: DataPipelineParams
    data_params: DataBaseParams
    mode: PipelineMode = PipelineMode.PREDICTION
    seed: int = 0

    def apply(self, samples: Iterable[Sample] | DataGeneratorParams) -> Iterator[Sample]:
        """The processed samples, one after the other, in order. In training mode each call is epoch 0."""
        context = PipelineContext(
            mode=self.mode,
            pipeline=self.pipeline_params,
            data=self.data_params,
            processors=self.params,
            collator=Collator({}, {}, {}, self.mode),
            batching=False,
            seed=self.seed,
            source=samples,
        )
        processes = self.pipeline_params.num_processes
        yield from samples_of(ParallelEngine(context, processes) if processes else InProcessEngine(context))
