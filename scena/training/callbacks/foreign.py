"""Callbacks of Keras in a training: which hooks they have, which of them cannot work here, and how a CSVLogger is resumed."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras

from scena.errors import TrainingError
from scena.training.callbacks.base import TrainerCallback

BATCH_HOOKS = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
TEST_BATCH_HOOKS = ("on_test_batch_begin", "on_test_batch_end")

_REFUSED = {
    "BackupAndRestore": "would put back weights without the optimizer, the data and the random numbers; leave it out: "
    "`scena resume` continues from the checkpoints of the run exactly",
    "SwapEMAWeights": "needs an optimizer with use_ema; leave it out and set --trainer.ema_decay, which validates and exports "
    "averaged weights",
    "OrbaxCheckpoint": "saves what Keras' fit consists of; leave it out: --trainer.checkpoint_every writes complete checkpoints",
    "ProgbarLogger": "would draw over the progress of the training; leave it out",
    "LearningRateScheduler": "sets the learning rate, which follows --learning_rate here; choose a schedule there, such as "
    "ListedRates or ExponentialDecay, or write one of your own",
    "ReduceLROnPlateau": "sets the learning rate, which follows --learning_rate here; train with --learning_rate ReduceOnPlateau",
}


def has_hook(callback: keras.callbacks.Callback, hooks: Iterable[str]) -> bool:
    """Whether a callback does something in one of these hooks, of its class or, as a LambdaCallback has them, of its own."""
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
                "Hand over an instance, such as MyCallback(), not its class."
            )
        for name, reason in _REFUSED.items():
            if isinstance(callback, getattr(keras.callbacks, name, ())):
                raise TrainingError(f"{_name(callback)} cannot be used here: it {reason}.")
        if isinstance(callback, keras.callbacks.ModelCheckpoint) and not callback.save_weights_only:
            raise TrainingError(
                f"{_name(callback)} cannot save the model of a training as a whole: give it save_weights_only=True and a name "
                "that ends in .weights.h5, or leave it out: the best model is in best/, checkpoints are written anyway."
            )
        monitor = getattr(callback, "monitor", None)
        undecided = getattr(callback, "mode", None) == "auto" and hasattr(callback, "monitor_op")
        if undecided and isinstance(monitor, str) and monitor.removeprefix("val_") != "loss":
            raise TrainingError(
                f"{_name(callback)} monitors {monitor!r}, and Keras does not know whether more is better: give it "
                "mode='max' or mode='min'."
            )


def check_monitors(callbacks: Iterable[keras.callbacks.Callback], names: Iterable[str]) -> None:
    """Refuses callbacks that watch a value which a training will not have.

    Args:
        callbacks: all callbacks.
        names: of all values that there will be.
    """
    there = sorted(names)
    for callback in callbacks:
        monitor = getattr(callback, "monitor", None)
        if isinstance(callback, TrainerCallback) or not isinstance(monitor, str) or monitor in there:
            continue
        if hasattr(callback, "monitor_op"):
            raise TrainingError(f"{_name(callback)} monitors {monitor!r}, but there are only {', '.join(there)}.")


def continue_logs(callbacks: Iterable[keras.callbacks.Callback], epoch: int) -> None:
    """Lets CSV loggers continue their files after a resume: the rows before `epoch` stay, later ones are written again."""
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


def _name(callback: keras.callbacks.Callback) -> str:
    return type(callback).__name__
