"""What flows between the nodes of the router: epochs that begin and end, and groups of pieces between them."""

from typing import Any

from scena.data.engine.memory import SlotPool


class Begin:
    """An epoch begins."""

    def __init__(self, epoch: int, positions: list[Any], resumed: bool) -> None:
        self.epoch = epoch
        self.positions = positions
        self.resumed = resumed


class End:
    """An epoch is over."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch


class Group:
    """Consecutive pieces: to be read by index, or in one slot."""

    def __init__(self, epoch: int, source: list[int] | None, pieces: list[Any]) -> None:
        self.epoch = epoch
        self.source = source
        """[slot, offset, length of the header], None if the samples are still to be read."""
        self.pieces = pieces
        """[number, first ordinal, last ordinal + 1, indices or None, position after it] of each piece."""


class Failed:
    """In the place of a group: what went wrong there."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def give_back(slots: SlotPool, event: Any) -> None:
    """Frees the slot of an event that nobody will read."""
    if isinstance(event, Group) and event.source is not None:
        slots.give(event.source[0])
