"""Shared memory of a pool of processes: one sparse memfd, cut into slots that grow as needed.

Each slot has its own stretch of the file; pages exist only where something was written. The kernel frees all of it with
the last process that holds it, however that process ended: nothing has a name, nothing can be left behind.
"""

import mmap
import os
import threading
from typing import Any

import numpy as np

from scena.data.engines.workers.messages import Stored
from scena.errors import DataError

STRIDE = 1 << 36
"""Address space of a slot in the file (64 GiB); it costs nothing until it is used."""
SLOTS = 4096
_PAGE = 1 << 16

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class SharedMemory:
    """The slots, as one process sees them."""

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            if not hasattr(os, "memfd_create"):
                raise DataError("Worker processes need Linux (memfd). Set num_processes=0 on this system.")
            descriptor = os.memfd_create("scena", os.MFD_CLOEXEC)
            os.ftruncate(descriptor, STRIDE * SLOTS)
        self.descriptor = descriptor
        self._mapped: dict[int, Bytes] = {}

    def view(self, slot: int, size: int) -> Bytes:
        """At least `size` bytes of a slot, writable."""
        mapped = self._mapped.get(slot)
        if mapped is None or len(mapped) < size:
            if size > STRIDE:
                raise DataError(f"A batch of {size} bytes is larger than any slot ({STRIDE} bytes).")
            length = -(-max(size + size // 8, _PAGE) // _PAGE) * _PAGE
            mapped = np.frombuffer(mmap.mmap(self.descriptor, length, offset=slot * STRIDE), np.uint8)
            self._mapped[slot] = mapped
        return mapped

    def close(self) -> None:
        """Lets go of the file; views that are still in use stay valid."""
        self._mapped.clear()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class SlotPool:
    """Which slots are free. Thread-safe, because the garbage collector may give a slot back in any thread."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self.count = 0
        self._lock = threading.Lock()

    def take(self) -> int:
        """A free slot; the one that was used last comes first, its pages are warm."""
        try:
            return self._free.pop()
        except IndexError:
            pass
        with self._lock:
            if self.count >= SLOTS:
                raise DataError(f"More than {SLOTS} batches are in use at once: do not keep batches, or copy them.")
            self.count += 1
            return self.count - 1

    def give(self, slot: int) -> None:
        """Frees a slot."""
        self._free.append(slot)


class Returns:
    """Slots that a worker has read and the parent may use again."""

    def __init__(self) -> None:
        self._slots: list[int] = []

    def give(self, slot: int) -> None:
        """A slot is not needed any more."""
        self._slots.append(slot)

    def take(self) -> list[int]:
        """What came together since the last call."""
        taken, self._slots = self._slots, []
        return taken


class Lease:
    """Keeps a slot until the last array that looks into it is gone."""

    def __init__(self, pool: SlotPool | Returns, slot: int, view: Bytes) -> None:
        self._pool = pool
        self._slot = slot
        self._view = view
        self.__array_interface__ = view.__array_interface__

    def bytes(self) -> Bytes:
        """The slot; arrays made of it keep the lease."""
        return np.asarray(self)

    def __del__(self) -> None:
        self._pool.give(self._slot)


def lease(pool: SlotPool | Returns, memory: SharedMemory, stored: Stored) -> Bytes:
    """The content of a slot up to the end of its header; the slot is given back with the last array that looks into it."""
    return Lease(pool, stored.slot, memory.view(stored.slot, stored.start + stored.length)).bytes()
