"""Callbacks of Keras in a training: which hooks they have, which cannot work here, and their state in checkpoints.

Checkpoints hold the attributes that change, if they are numbers, text, containers of those, or arrays. A callback that keeps anything else
from epoch to epoch has to be a `TrainerCallback` with `state` and `restore`; a warning says so.
"""

import csv
import logging
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from scena.errors import TrainingError
from scena.training.callbacks.base import TrainerCallback

logger = logging.getLogger(__name__)

Array = np.ndarray[Any, Any]
ARRAYS = "arrays"
_NOT_STATE = {"params", "_model", "model", "validation_data"}
_NOT_PLAIN = object()
BATCH_HOOKS = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
TEST_BATCH_HOOKS = ("on_test_batch_begin", "on_test_batch_end")

_REFUSED = {
    "BackupAndRestore": "would restore weights without the optimizer, the data and the random numbers; remove it: "
    "`scena resume` continues exactly from the checkpoints of the run",
    "SwapEMAWeights": "needs an optimizer with use_ema; remove it and set --trainer.ema_decay, which validates and exports "
    "averaged weights",
    "OrbaxCheckpoint": "saves the state of Keras' fit; remove it: --trainer.checkpoint_every writes complete checkpoints",
    "ProgbarLogger": "would draw over the progress of the training; remove it",
    "LearningRateScheduler": "sets the learning rate, which follows --learning_rate here; choose a schedule there, such as "
    "ListedRates or ExponentialDecay, or write one of your own",
    "ReduceLROnPlateau": "sets the learning rate, which follows --learning_rate here; train with --learning_rate ReduceOnPlateau",
}


def has_hook(callback: keras.callbacks.Callback, hooks: Iterable[str]) -> bool:
    """Whether a callback has one of these hooks, in its class or, as a LambdaCallback, in the object."""
    base = keras.callbacks.Callback
    return any(
        hook in vars(callback) or getattr(type(callback), hook, None) is not getattr(base, hook) for hook in hooks
    )


def check_callbacks(callbacks: Iterable[Any]) -> None:
    """Refuses callbacks that cannot work in a training of Scena.

    Raises:
        TrainingError: names the callback, the reason, and what to use instead.
    """
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.Callback):
            raise TrainingError(
                f"A callback must be a keras.callbacks.Callback. Received: {callback!r}. "
                "Pass an instance, such as MyCallback(), not its class."
            )
        for name, reason in _REFUSED.items():
            if isinstance(callback, getattr(keras.callbacks, name, ())):
                raise TrainingError(f"{type(callback).__name__} cannot be used here: it {reason}.")
        if isinstance(callback, keras.callbacks.ModelCheckpoint) and not callback.save_weights_only:
            raise TrainingError(
                f"{type(callback).__name__} cannot save the model of a training as a whole: give it save_weights_only=True and a name "
                "that ends in .weights.h5, or remove it: the best model is in best/, checkpoints are written anyway."
            )
        monitor = getattr(callback, "monitor", None)
        undecided = getattr(callback, "mode", None) == "auto" and hasattr(callback, "monitor_op")
        if undecided and isinstance(monitor, str) and monitor.removeprefix("val_") != "loss":
            raise TrainingError(
                f"{type(callback).__name__} monitors {monitor!r}, and Keras does not know whether more is better: give it "
                "mode='max' or mode='min'."
            )


def check_monitors(callbacks: Iterable[keras.callbacks.Callback], names: Iterable[str]) -> None:
    """Refuses callbacks that monitor a value which the training will not have; `names` are those of all values."""
    there = sorted(names)
    for callback in callbacks:
        monitor = getattr(callback, "monitor", None)
        if isinstance(callback, TrainerCallback) or not isinstance(monitor, str) or monitor in there:
            continue
        if hasattr(callback, "monitor_op"):
            raise TrainingError(
                f"{type(callback).__name__} monitors {monitor!r}, but there are only {', '.join(there)}."
            )


def continue_logs(callbacks: Iterable[keras.callbacks.Callback], epoch: int) -> None:
    """Lets CSV loggers continue their files after a resume: keeps the rows before `epoch`; later ones are written again."""
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.CSVLogger) or not Path(callback.filename).is_file():
            continue
        path, separator = Path(callback.filename), callback.sep
        with path.open(newline="") as file:
            rows = list(csv.reader(file, delimiter=separator))
        kept = rows[:1] + [row for row in rows[1:] if row and row[0].isdecimal() and int(row[0]) < epoch]
        if len(kept) <= 1:
            continue
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter=separator).writerows(kept)
        callback.append = True


class KerasCallbackState:
    """The changed attributes of a Keras callback; `key` is its name in checkpoints."""

    def __init__(self, callback: keras.callbacks.Callback, key: str) -> None:
        self.callback = callback
        self.key = key
        self._initial: dict[str, Any] = {}
        self._others: dict[str, tuple[Any, int]] = {}
        """The attributes that checkpoints cannot hold, as they were at the beginning, and their sizes."""
        self._warned: set[str] = set()

    def begin(self) -> None:
        """Remembers the attributes after `on_train_begin`: those that never change are settings, not state."""
        self._initial = _attributes(self.callback)
        self._others = _others(self.callback)

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The changed attributes: plain data, and arrays by their key in the checkpoint."""
        self._warn_of_losses()
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

    def _warn_of_losses(self) -> None:
        """Warns once of each attribute that has changed and that checkpoints cannot hold."""
        bases = type(self.callback).__mro__
        if any(base.__module__.partition(".")[0] == "keras" and base is not keras.callbacks.Callback for base in bases):
            return  # Keras' own: files, writers and the like, which it opens again
        for name, (value, size) in _others(self.callback).items():
            before, size_before = self._others.get(name, (None, 0))
            if name in self._warned or (value is before and size == size_before):
                continue
            self._warned.add(name)
            logger.warning(
                "%s.%s is %s, which a checkpoint cannot hold: after a resume it is as at the beginning. Keep numbers, text, arrays, or "
                "containers of numbers and text, or write a scena.TrainerCallback with `state` and `restore`.",
                type(self.callback).__name__, name, type(value).__name__,
            )  # fmt: skip

    def restore(self, state: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Restores the attributes."""
        for name, value in state.get("plain", {}).items():
            if name not in _NOT_STATE:
                self._set(name, _decoded(value))
        for name, count in state.get(ARRAYS, {}).items():
            if name in _NOT_STATE:
                continue
            key = f"callbacks/{self.key}/{name}"
            values = tensors[key].copy() if count is None else [tensors[f"{key}/{i}"].copy() for i in range(count)]
            setattr(self.callback, name, values)

    def _set(self, name: str, value: Any) -> None:
        """Sets an attribute; a container of its own kind, such as a Counter, is filled instead."""
        current = vars(self.callback).get(name)
        if isinstance(value, dict) and isinstance(current, dict):
            current.clear()
            current.update(value)
        elif isinstance(value, list) and isinstance(current, list):
            current[:] = value
        else:
            setattr(self.callback, name, value)


def _attributes(callback: keras.callbacks.Callback) -> dict[str, Any]:
    found = {name: _plain(value) for name, value in vars(callback).items() if name not in _NOT_STATE}
    return {name: value for name, value in found.items() if value is not _NOT_PLAIN}


def _others(callback: keras.callbacks.Callback) -> dict[str, tuple[Any, int]]:
    """The other attributes, and how many items each has."""
    found = {name: value for name, value in vars(callback).items() if name not in _NOT_STATE}
    return {
        name: (value, len(value) if hasattr(value, "__len__") else 0)
        for name, value in found.items()
        if _plain(value) is _NOT_PLAIN
    }


def _plain(value: Any) -> Any:
    """A copy of the value as plain data or arrays, `_NOT_PLAIN` if it is neither. JSON has no tuples, sets and deques: they are marked."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.copy() if value.dtype.kind in "biuf" else _NOT_PLAIN
    if isinstance(value, list) or type(value) is tuple:
        items = [_plain(item) for item in value]
        if _holds_arrays(items):
            return items
        return _marked(items, {} if isinstance(value, list) else {KIND: "tuple"})
    if type(value) is deque:
        return _marked([_plain(item) for item in value], {KIND: "deque", "most": value.maxlen})
    if type(value) is set:
        return _marked(sorted(map(_plain, value), key=repr), {KIND: "set"})
    if isinstance(value, dict) and KIND not in value:
        values = [_plain(item) for item in value.values()]
        if all(isinstance(name, str) for name in value):
            return _NOT_PLAIN if _is_nested(values) else dict(zip(value, values, strict=True))
        pairs = [[_plain(name), item] for name, item in zip(value, values, strict=True)]
        return _marked([part for pair in pairs for part in pair], {KIND: "dict"})
    return _NOT_PLAIN


KIND = "scena_kind"
"""Marks what JSON has no type for."""


def _marked(items: list[Any], mark: dict[str, Any]) -> Any:
    if _is_nested(items):
        return _NOT_PLAIN
    return {**mark, "items": items} if mark else items


def _is_nested(items: list[Any]) -> bool:
    """Whether some items are arrays, or cannot be stored at all."""
    return any(item is _NOT_PLAIN or isinstance(item, np.ndarray) or _holds_arrays(item) for item in items)


def _decoded(value: Any) -> Any:
    """The value that `_plain` has stored."""
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if KIND not in value:
        return {name: _decoded(item) for name, item in value.items()}
    items = _decoded(value["items"])
    if value[KIND] == "dict":
        return dict(zip(items[::2], items[1::2], strict=True))
    if value[KIND] == "deque":
        return deque(items, value["most"])
    return set(items) if value[KIND] == "set" else tuple(items)


def _holds_arrays(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, np.ndarray) for item in value)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if _holds_arrays(one) or _holds_arrays(other):
        return False
    return bool(one == other) and type(one) is type(other)
