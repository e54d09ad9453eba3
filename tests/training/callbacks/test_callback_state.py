"""Callbacks of Keras know nothing of checkpoints; what changes in them survives all the same."""

from typing import Any

import keras
import numpy as np

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


def test_what_cannot_be_stored_is_left_alone() -> None:
    class Odd(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.count = 0
            self.table: dict[str, Any] = {"a": [1, 2]}
            self.array = np.zeros(3)
            self.file = object()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.count += 1
            self.table["b"] = [3]
            self.array += 1
            self.file = object()

    old = started(Odd())
    epochs(old.callback, [0.0, 0.0])
    plain, _ = old.state()
    assert plain == {"plain": {"count": 2, "table": {"a": [1, 2], "b": [3]}}, "arrays": {"array": None}}
    new: Any = carried_over(old, Odd())
    assert new.count == 2
    np.testing.assert_array_equal(new.array, [2, 2, 2])


def test_nothing_changed_is_nothing_to_store() -> None:
    assert started(keras.callbacks.EarlyStopping()).state() == ({}, {})
