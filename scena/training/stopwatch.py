"""Where the time of a training goes: waiting for data, steps, validation, checkpoints."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

KINDS = ("data", "step", "validation", "checkpoint")


class Stopwatch:
    """Adds up seconds by kind of work; what is not in `KINDS` counts as the rest."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(KINDS, 0.0)
        self.begun = time.perf_counter()

    @contextmanager
    def measuring(self, kind: str) -> Iterator[None]:
        """Counts the time of the block."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[kind] += time.perf_counter() - begun

    def take(self) -> dict[str, float]:
        """Seconds by kind since the last call, and the whole time as "total"."""
        now = time.perf_counter()
        taken = {**self.seconds, "total": now - self.begun}
        self.seconds, self.begun = dict.fromkeys(KINDS, 0.0), now
        return taken
