"""The end of the router: batches that wait for the consumer."""

from collections import deque
from typing import TYPE_CHECKING, Any

from scena.data.engine.events import Group, give_back

if TYPE_CHECKING:
    from scena.data.engine.router import Router

MEMORY_BYTES = 1 << 28
"""Batches are prepared ahead up to `prefetch`, or to this much memory if that is less."""


class FinalQueue:
    """Batches that wait for the consumer, in order, and the ends of epochs between them."""

    def __init__(self, router: "Router") -> None:
        self._router = router
        self._ready: deque[Any] = deque()
        self._count = 0
        self._size = 0.0

    def measured(self, size: float) -> None:
        """Learns how large a batch is."""
        self._size = max(size, 0.9 * self._size)

    def _limit(self) -> int:
        limit = self._router.limit
        if self._size:
            limit = max(min(limit, int(MEMORY_BYTES / self._size)), len(self._router.pool.workers) + 1)
        return limit

    def room(self) -> int:
        """Batches that may still be prepared."""
        return self._limit() - self._count

    def hungry(self) -> bool:
        """Whether it is time to prepare more."""
        return 4 * self._count <= 3 * self._limit()

    def accept(self, event: Any) -> None:
        """Takes what the last node gives."""
        self._count += self._cost(event)
        self._ready.append(event)

    def take(self) -> Any:
        """The next event, or None."""
        if not self._ready:
            return None
        event = self._ready.popleft()
        self._count -= self._cost(event)
        return event

    def _cost(self, event: Any) -> int:
        return len(event.pieces) if isinstance(event, Group) else 1

    def drop(self) -> None:
        """Gives back slots that nobody will read."""
        for event in self._ready:
            give_back(self._router.pool.slots, event)
        self._ready.clear()
