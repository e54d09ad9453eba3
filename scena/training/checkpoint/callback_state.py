"""The state of callbacks that know nothing of checkpoints: attributes that change are stored and restored.

Numbers, text, lists, dicts and arrays are stored. A callback that keeps anything else from epoch to epoch has to be a
`TrainerCallback` with `state` and `restore`.
"""

from typing import Any

import keras
import numpy as np

Array = np.ndarray[Any, Any]
ARRAYS = "arrays"
_NOT_STATE = {"params", "_model", "model", "validation_data"}


class KerasCallbackState:
    """The changed attributes of one callback.

    Args:
        callback: any Keras callback.
        key: its name in checkpoints.
    """

    def __init__(self, callback: keras.callbacks.Callback, key: str) -> None:
        self.callback = callback
        self.key = key
        self._initial: dict[str, Any] = {}

    def begin(self) -> None:
        """Notes the attributes after `on_train_begin`: those that stay equal are settings, not state."""
        self._initial = _attributes(self.callback)

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The changed attributes: plain data, and arrays by their key in a checkpoint."""
        plain: dict[str, Any] = {}
        counts: dict[str, int | None] = {}
        arrays: dict[str, Array] = {}
        for name, value in _attributes(self.callback).items():
            if name in self._initial and _equal(self._initial[name], value):
                continue
            if isinstance(value, np.ndarray):
                counts[name] = None
                arrays[f"callbacks/{self.key}/{name}"] = value
            elif _holds_arrays(value):
                counts[name] = len(value)
                arrays |= {f"callbacks/{self.key}/{name}/{i}": item for i, item in enumerate(value)}
            else:
                plain[name] = value
        return ({"plain": plain, ARRAYS: counts} if plain or counts else {}), arrays

    def restore(self, state: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Restores the attributes; skips those that the callback no longer has."""
        for name, value in state.get("plain", {}).items():
            if name in vars(self.callback) and name not in _NOT_STATE:
                setattr(self.callback, name, value)
        for name, count in state.get(ARRAYS, {}).items():
            if name not in vars(self.callback) or name in _NOT_STATE:
                continue
            key = f"callbacks/{self.key}/{name}"
            values = tensors[key].copy() if count is None else [tensors[f"{key}/{i}"].copy() for i in range(count)]
            setattr(self.callback, name, values)


def _attributes(callback: keras.callbacks.Callback) -> dict[str, Any]:
    found = {name: _plain(value) for name, value in vars(callback).items() if name not in _NOT_STATE}
    return {name: value for name, value in found.items() if value is not _NOT_PLAIN}


_NOT_PLAIN = object()


def _plain(value: Any) -> Any:
    """A copy of the value as plain data or arrays, `_NOT_PLAIN` if it is neither."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.copy() if value.dtype.kind in "biuf" else _NOT_PLAIN
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        mixed = any(isinstance(item, np.ndarray) for item in items) and not _holds_arrays(items)
        return _NOT_PLAIN if mixed or any(item is _NOT_PLAIN for item in items) else items
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        entries = {name: _plain(item) for name, item in value.items()}
        bad = any(
            item is _NOT_PLAIN or isinstance(item, np.ndarray) or _holds_arrays(item) for item in entries.values()
        )
        return _NOT_PLAIN if bad else entries
    return _NOT_PLAIN


def _holds_arrays(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, np.ndarray) for item in value)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if _holds_arrays(one) or _holds_arrays(other):
        return False
    return bool(one == other) and type(one) is type(other)
