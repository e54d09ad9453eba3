"""Samples that were left out because of an error (on_error=skip)."""

import logging

from scena.data.errors import DataError, SampleError

logger = logging.getLogger("scena.data")


class Skipped:
    """Counts the samples that were left out because of an error, and logs each."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.identities: list[str] = []
        self.silent = False
        """In a worker: only collect, the parent counts and logs."""

    def add(self, error: DataError | str) -> None:
        """Leaves a sample out; raises once too many were."""
        error = error.reason if isinstance(error, SampleError) else error
        self.identities.append(str(error))
        if self.silent:
            return
        logger.warning("left out a sample (on_error=skip): %s", error)
        if self.limit is not None and len(self.identities) > self.limit:
            raise DataError(
                f"{len(self.identities)} samples failed, more than max_skipped={self.limit}. The last: {error}"
            )
