"""Parameters and histories in the form that trackers take: flat names and numbers."""

from collections.abc import Iterator
from typing import Any, Literal

from scena.params import Params, root_of, to_raw
from scena.params.kinds import CLASS
from scena.params.settable import walk

NOT_TRACKED = ("epoch", "step", "seconds")
MEASURED: tuple[Literal["val", "lav"], ...] = ("val", "lav")
"""Sources of results other than the training itself; the prefixes of their names."""


def typed_values(trainer: Params) -> dict[str, Any]:
    """The parameters of a training by the names of their flags, without the dashes."""
    root = root_of(trainer=trainer)
    found: dict[str, Any] = {}
    for node in walk(to_raw(root), type(root)):
        value = node.value
        if isinstance(value, dict) and CLASS in value:
            value = value[CLASS] if node.path != ("trainer",) else None
        elif isinstance(value, list) and all(isinstance(item, dict) and CLASS in item for item in value):
            value = [item[CLASS] for item in value]
        found[node.name] = value
    return tracked_params(found)


def flag_names(trainer: Params) -> dict[str, str]:
    """The name of each flag, without the dashes, by the dotted path of its value in the stored tree."""
    root = root_of(trainer=trainer)
    found = {".".join(map(str, node.path[1:])): node.name for node in walk(to_raw(root), type(root))}
    return {**found, **{f"{path}.{CLASS}": name for path, name in found.items()}}


def tracked_params(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters in the form that trackers take: lists as texts, without unset values and the trackers' own parameters."""
    return {
        name: str(value) if isinstance(value, list | dict) else value
        for name, value in params.items()
        if value is not None and name.partition(".")[0] != "tracker"
    }


def from_history(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, float], int]]:
    """The numbers of each epoch as trackers name them, and its step."""
    for row in rows:
        own = {name: float(value) for name, value in row.items() if name not in NOT_TRACKED and value is not None}
        yield {tracked_name(name): value for name, value in own.items()}, int(row["step"])


def tracked_name(name: str) -> str:
    """The name of a column of the history in a tracker: `val_loss` is `val/loss`, `loss` is `train/loss`."""
    kind, _, rest = name.partition("_")
    return f"{kind}/{rest}" if kind in MEASURED and rest else f"train/{name}"
