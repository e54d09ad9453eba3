"""When this machine is quiet: a virtual one shares its cores with others, and nothing here shows when they use them.

A short loop is timed on each core. Beside a busy neighbour it takes up to 1.7 times as long as alone, in bursts of tenths of a second.
"""

import os
import time

_LOOPS = 20_000
_LIMIT = 1.12
"""A core is quiet while the loop takes at most this much longer than ever before."""


class Host:
    """Knows how fast each core of this machine can be, and says whether it is now."""

    def __init__(self, seconds: float = 3.0) -> None:
        self._cores = sorted(os.sched_getaffinity(0))
        self._best = dict.fromkeys(self._cores, float("inf"))
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self.is_quiet()

    def is_quiet(self) -> bool:
        """Whether all cores run at their full speed at this moment."""
        quiet = True
        for core in self._cores:
            os.sched_setaffinity(0, {core})
            needed = min(_time() for _ in range(2))
            self._best[core] = min(self._best[core], needed)
            quiet = quiet and needed <= _LIMIT * self._best[core]
        os.sched_setaffinity(0, self._cores)
        return quiet

    def wait(self, patience: float) -> bool:
        """Waits for a quiet moment; False if there was none for so many seconds."""
        end = time.perf_counter() + patience
        while not self.is_quiet():
            if time.perf_counter() > end:
                return False
            time.sleep(0.02)
        return True


def _time() -> float:
    start = time.perf_counter()
    total = 1
    for step in range(_LOOPS):
        total = (total * 31 + step) % 65_521
    return time.perf_counter() - start
