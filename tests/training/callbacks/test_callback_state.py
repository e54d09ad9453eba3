"""Callbacks of Keras know nothing of checkpoints; what changes in them survives all the same."""

import json
from collections import Counter, deque
from typing import Any

import keras
import numpy as np
import pytest

from scena.training.callbacks.keras_callbacks import KerasCallbackState


def epochs(callback: keras.callbacks.Callback, values: list[float]) -> None:
    for epoch, value in enumerate(values):
        callback.on_epoch_end(epoch, {"val_loss": value})


def model() -> keras.Model:
    made = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    made.stop_training = False
    return made


def started(callback: keras.callbacks.Callback) -> KerasCallbackState:
    callback.set_model(model())
    callback.on_train_begin()
    state = KerasCallbackState(callback, "name")
    state.begin()
    return state


def carried_over(old: KerasCallbackState, callback: keras.callbacks.Callback) -> keras.callbacks.Callback:
    """A new callback, as a new process would make it, with the state of the old one."""
    plain, arrays = old.state()
    started(callback).restore(plain, arrays)
    return callback


def test_early_stopping_goes_on_counting() -> None:
    def make() -> Any:
        return keras.callbacks.EarlyStopping(patience=3, restore_best_weights=True)

    old = started(make())
    epochs(old.callback, [1.0, 2.0, 2.0])
    best = [weight.copy() for weight in old.callback.best_weights]
    new: Any = carried_over(old, make())
    assert (new.wait, new.best) == (2, 1.0)
    np.testing.assert_array_equal(new.best_weights[0], best[0])
    new.on_epoch_end(3, {"val_loss": 2.0})
    assert new.model.stop_training


def test_settings_are_not_state() -> None:
    """A callback that was written with another patience keeps the new one."""
    old = started(keras.callbacks.ReduceLROnPlateau(patience=5))
    epochs(old.callback, [1.0, 2.0])
    new: Any = carried_over(old, keras.callbacks.ReduceLROnPlateau(patience=9))
    assert (new.patience, new.wait, new.best) == (9, 1, 1.0)


def test_containers_keep_their_kind_and_attributes_may_come_late() -> None:
    class Containers(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.last: deque[float] = deque(maxlen=2)
            self.seen: set[int] = set()
            self.votes: Counter[int] = Counter()
            self.by_epoch: dict[int, tuple[int, list[float]]] = {}

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.last.append(logs["val_loss"])
            self.seen.add(epoch)
            self.votes[epoch % 2] += 1
            self.by_epoch[epoch] = (epoch, [logs["val_loss"]])
            self.best = (epoch, logs["val_loss"])

    old = started(Containers())
    epochs(old.callback, [3.0, 2.0, 1.0])
    plain, arrays = old.state()
    new: Any = Containers()
    started(new).restore(json.loads(json.dumps(plain)), arrays)
    assert new.last == deque([2.0, 1.0]) and new.last.maxlen == 2
    assert new.votes == Counter({0: 2, 1: 1}) and new.votes[7] == 0
    assert (new.seen, new.best, new.by_epoch[1]) == ({0, 1, 2}, (2, 1.0), (1, [2.0]))


def test_what_cannot_be_stored_is_left_alone_and_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.count = 0
            self.table: dict[str, Any] = {"a": [1, 2]}
            self.array = np.zeros(3)
            self.file = object()
            self.setting = object()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.count += 1
            self.table["b"] = [3]
            self.array += 1
            self.file = object()

    old = started(Odd())
    epochs(old.callback, [0.0, 0.0])
    plain, _ = old.state()
    assert [record.getMessage() for record in caplog.records] == [
        (
            "Odd.file is object, which a checkpoint cannot hold: after a resume it is as at the beginning. Keep numbers, text, arrays, or "
            "containers of numbers and text, or write a scena.TrainerCallback with `state` and `restore`."
        )
    ]
    assert plain == {"plain": {"count": 2, "table": {"a": [1, 2], "b": [3]}}, "arrays": {"array": None}}
    new: Any = carried_over(old, Odd())
    assert new.count == 2
    np.testing.assert_array_equal(new.array, [2, 2, 2])


def test_nothing_changed_is_nothing_to_store() -> None:
    assert started(keras.callbacks.EarlyStopping()).state() == ({}, {})
