"""Writes checkpoints in the background: the training waits for a copy in memory, not for the disk."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from scena.errors import CheckpointError
from scena.storage.tensor_file import Array, TensorBuffer
from scena.training.checkpoint.store import CheckpointStore, StoredState

logger = logging.getLogger(__name__)


class CheckpointWriter:
    """Copies the state and writes it while the training continues; one checkpoint at a time.

    A checkpoint that cannot be written is reported. The training continues, earlier checkpoints stay, and the next one is tried.

    Args:
        store: the checkpoints.
    """

    def __init__(self, store: CheckpointStore) -> None:
        self.store = store
        self.failure: CheckpointError | None = None
        """Why the last checkpoint could not be written; None if it was written."""
        self.waited = 0.0
        """Seconds the training waited for the last checkpoint."""
        self._buffer = TensorBuffer()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="scena-checkpoint")
        self._pending: Future[None] | None = None

    def reserve(self, arrays: Mapping[str, Array]) -> None:
        """Allocates the memory for a copy of the state ahead of time, in the background."""
        self._pending = self._thread.submit(self._buffer.reserve, arrays)

    def save(
        self,
        step: int,
        arrays: Callable[[], Mapping[str, Array]],
        state: StoredState,
        accompany: Callable[[Path], None],
        pinned: int | None = None,
    ) -> None:
        """Copies the state and starts to write it.

        Args:
            step: the checkpoint's step.
            arrays: reads the variables; called once the buffer is free.
            state: the rest of the state; the caller must not change it afterwards.
            accompany: adds other files to the directory of the checkpoint.
            pinned: the step of an older checkpoint to keep.
        """
        self.wait()
        begun = time.perf_counter()
        try:
            aside = self.store.begin(step)
            accompany(aside)
            self._buffer.fill(arrays())
        except (CheckpointError, OSError) as error:
            self.store.abandon(step)
            self._failed(step, error)
            return
        self.waited = time.perf_counter() - begun
        self._pending = self._thread.submit(self._write, step, state, pinned)

    def wait(self) -> None:
        """Waits until the current checkpoint is on disk, or has failed."""
        if self._pending is not None:
            self._pending.result()
            self._pending = None

    def close(self) -> None:
        """Waits, and ends the thread."""
        self.wait()
        self._thread.shutdown()

    def _write(self, step: int, state: StoredState, pinned: int | None) -> None:
        try:
            self.store.commit(step, self._buffer, state, pinned)
        except (CheckpointError, OSError) as error:
            self._failed(step, error)
        else:
            if self.failure is not None:
                logger.info("Checkpoints can be written again: %s", self.store.path(step))
            self.failure = None

    def _failed(self, step: int, error: CheckpointError | OSError) -> None:
        self.failure = error if isinstance(error, CheckpointError) else self.store.failure(step, error)
        logger.warning("%s The training continues; the next checkpoint is tried when it is due.", self.failure)
