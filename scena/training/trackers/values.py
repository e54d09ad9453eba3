"""Parameters and histories in the form that trackers take: flat names and numbers."""

from collections.abc import Iterator
from typing import Any, Literal

NOT_TRACKED = ("epoch", "step", "seconds")
MEASURED: tuple[Literal["val", "lav"], ...] = ("val", "lav")
"""Sources of results other than the training itself; the prefixes of their names."""


def flat_values(raw: Any, path: str = "") -> dict[str, Any]:
    """The plain values of a tree of parameters by their dotted names."""
    if isinstance(raw, dict):
        found: dict[str, Any] = {}
        for name, value in raw.items():
            below = path if name == "class" else f"{path}.{name}" if path else name
            found |= flat_values(value, below)
        return found
    if isinstance(raw, list):
        return {path: str(raw)} if path else {}
    return {} if raw is None or not path else {path: raw}


def from_history(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, float], int]]:
    """The numbers of each epoch as trackers name them, and its step."""
    for row in rows:
        own = {name: float(value) for name, value in row.items() if name not in NOT_TRACKED and value is not None}
        yield {tracked_name(name): value for name, value in own.items()}, int(row["step"])


def tracked_name(name: str) -> str:
    """The name of a column of the history in a tracker: `val_loss` is `val/loss`, `loss` is `train/loss`."""
    kind, _, rest = name.partition("_")
    return f"{kind}/{rest}" if kind in MEASURED and rest else f"train/{name}"
