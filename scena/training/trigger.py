"""`Trigger`: intervals in epochs, steps or time, and when they are due."""

import re
from typing import Any, Literal, Self

from scena.params.declare import FlagValue

Unit = Literal["epochs", "steps", "seconds"]
_UNITS: dict[str, tuple[Unit, float]] = {
    "": ("epochs", 1), "epoch": ("epochs", 1), "epochs": ("epochs", 1), "step": ("steps", 1), "steps": ("steps", 1),
    "s": ("seconds", 1), "sec": ("seconds", 1), "min": ("seconds", 60), "h": ("seconds", 3600),
}  # fmt: skip

MOST = 1e12


class Trigger(FlagValue):
    """An interval: `2` or `2epochs`, `200steps`, `30s`, `10min`, `3h`; `0` means never.

    Attributes:
        amount: units between two events; 0 for never.
        unit: the unit of `amount`.
    """

    __slots__ = ("amount", "unit")

    def __init__(self, amount: float, unit: Unit = "epochs") -> None:
        self.amount, self.unit = amount, unit

    @classmethod
    def from_param(cls, raw: Any) -> Self:
        """Parses the text of a flag."""
        match = (
            re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e-?\d+)?)\s*([a-z]*)\s*", str(raw))
            if not isinstance(raw, bool)
            else None
        )
        if match is None or match[2] not in _UNITS:
            raise ValueError("an interval such as 1, 2epochs, 200steps, 30s, 10min or 3h")
        unit, factor = _UNITS[match[2]]
        amount = float(match[1]) * factor
        if amount > MOST:
            raise ValueError(f"an interval of at most {MOST:g} {unit}")
        if unit != "seconds" and amount != int(amount):
            raise ValueError(f"a whole number of {unit}")
        return cls(amount, unit)

    def to_param(self) -> int | str:
        amount: float = int(self.amount) if self.amount == int(self.amount) else self.amount
        if self.unit == "epochs":
            return int(amount)
        return f"{amount}{'steps' if self.unit == 'steps' else 's'}"

    def due_at_epoch(self, epoch: int) -> bool:
        """Whether the end of this epoch (counted from 1) is one of the events."""
        return self.unit == "epochs" and self.amount > 0 and epoch % int(self.amount) == 0

    def due_at_step(self, step: int) -> bool:
        """Whether the end of this step (counted from 1) is one of the events."""
        return self.unit == "steps" and self.amount > 0 and step % int(self.amount) == 0

    def steps_until_due(self, step: int) -> int | None:
        """The number of steps from `step` to the next event; None if the interval is not in steps."""
        if self.unit != "steps" or self.amount <= 0:
            return None
        return int(self.amount) - step % int(self.amount)

    def due_after(self, seconds: float) -> bool:
        """Whether the next event is due this much time after the last one."""
        return self.unit == "seconds" and 0 < self.amount <= seconds

    def __bool__(self) -> bool:
        return self.amount > 0


class Duration(Trigger):
    """A length of time: `90s`, `30min`, `3h`; `0` means no limit."""

    __slots__ = ()

    @classmethod
    def from_param(cls, raw: Any) -> Self:
        try:
            read = Trigger.from_param(raw)
        except ValueError:
            read = Trigger(1)
        if read.unit != "seconds" and read.amount:
            raise ValueError("a time such as 90s, 30min or 3h (0: no limit)")
        return cls(read.amount, "seconds")

    def seconds(self) -> float | None:
        """The time in seconds; None for no limit."""
        return self.amount or None
