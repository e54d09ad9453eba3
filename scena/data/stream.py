"""A stream of batches with a position: what a training reads from."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from scena.data.batch import Batch, Cursor
from scena.data.stages.context import PipelineContext

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
        """The samples skipped because of errors (on_error=skip), one line each."""
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
                which = "sample" if count == 1 else "samples"
                mode = self._context.mode.value
                logger.warning("Skipped %d %s of the %s data because of errors (on_error=skip).", count, which, mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
