"""Where a worker's small objects lie: not in the last free places of many pools.

CPython takes numbers and other small objects from pools of 16 KB. It drops a pool that is full from its list, and puts it back as
soon as one of its objects dies. Imports leave pools with one or two free places behind; a loop of integer arithmetic that happens to
live in them moves a pool off and onto the list with almost every operation and is 5 to 13 % slower for it
(docs/decisions/0013-holes-of-a-worker-are-filled.md).
"""

_POOL = 16 * 1024
_ENOUGH = 128
"""Free places in one pool that are enough for what is alive between two samples."""
_MOST = 1 << 15
"""Objects that are held at most: about a megabyte, most of it in places that were lost anyway."""


class HoleFiller:
    """Holds unused numbers in the holes, so that the next ones come from a pool with many free places."""

    def __init__(self) -> None:
        self._held: list[float] = []
        self._tasks = 0

    def before_task(self) -> None:
        """Fills the holes before tasks 1, 2, 4, 8 and so on: the first ones still create what stays."""
        self._tasks += 1
        if self._tasks & (self._tasks - 1) == 0:
            self.fill()

    def fill(self) -> None:
        """Fills the holes that there are now."""
        while len(self._held) < _MOST:
            found = [place + 0.5 for place in range(_ENOUGH)]  # a float takes as much as an int
            pool = id(found[-1]) // _POOL
            elsewhere = [number for number in found if id(number) // _POOL != pool]
            if not elsewhere:
                return
            self._held += elsewhere
