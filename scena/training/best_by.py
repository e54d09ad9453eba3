"""`BestBy`: which value decides about the best model, and in which direction, as it is written on the command line."""

from typing import Any, Self


class BestBy:
    """`min:val_loss`, `max:acc`, `max:lav_NAME`, `min:train_loss`.

    Args:
        mode: "min" or "max".
        name: the value; a plain name is the validation's, else LAV's, else the training's.
    """

    __slots__ = ("mode", "name")

    def __init__(self, mode: str, name: str) -> None:
        self.mode = mode
        self.name = name

    @classmethod
    def from_param(cls, raw: Any) -> Self:
        """Reads what a user wrote."""
        mode, colon, name = str(raw).partition(":")
        if mode not in ("min", "max") or not colon or not name or name != name.strip():
            raise ValueError("a direction and a value, such as min:val_loss or max:acc")
        return cls(mode, name)

    def to_param(self) -> str:
        """What a user would write for it."""
        return f"{self.mode}:{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BestBy) and (self.mode, self.name) == (other.mode, other.name)

    def __hash__(self) -> int:
        return hash((self.mode, self.name))

    def __repr__(self) -> str:
        return f"BestBy({self.to_param()!r})"
