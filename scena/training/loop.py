"""The training loop: epochs, blocks of steps, validations and checkpoints, each at its exact step."""

import math
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from scena.data.batch import Batch
from scena.data.cursor import Cursor
from scena.data.pipeline import BatchStream
from scena.model.tf_engine import Arrays
from scena.training.callbacks.base import TrainerCallback
from scena.training.errors import TrainingError
from scena.training.run import TrainingRun, Validation

LONGEST_BLOCK = 32
BLOCK_SECONDS = 0.05
"""A block of compiled steps takes about this long: long enough to lose nothing to Python, short enough to react to a signal."""


class TrainingLoop:
    """Runs a training from where its progress stands to its end.

    Args:
        run: what is trained.
        callbacks: Keras callbacks, Scena's own among them.
        validation: LAV on the prediction graph, if asked for.
        save: writes a checkpoint of the present state.
    """

    def __init__(
        self,
        run: TrainingRun,
        callbacks: list[keras.callbacks.Callback],
        validation: Validation | None,
        save: Callable[[], None],
    ) -> None:
        self.run = run
        self._own = [callback for callback in callbacks if isinstance(callback, TrainerCallback)]
        self._callbacks = keras.callbacks.CallbackList(
            callbacks, model=run.model, epochs=run.params.epochs, steps=run.steps_per_epoch, verbose=0
        )
        self._per_batch = any(_sees_batches(callback) for callback in callbacks)
        self._validation = validation
        self._save = save
        self._block = 1
        self._last_time = {name: time.monotonic() for name in ("val", "lav", "checkpoint")}
        self._stream: BatchStream | None = None

    def execute(self) -> None:
        """Trains until the last epoch, or until a callback sets `model.stop_training`."""
        run = self.run
        run.model.stop_training = False
        self._callbacks.on_train_begin()
        logs: dict[str, float] = {}
        try:
            while run.progress.epoch < run.params.epochs and not run.model.stop_training:
                logs = self._epoch()
        finally:
            self._close_stream()
        run.progress.finished = True
        self._callbacks.on_train_end(logs)

    def _epoch(self) -> dict[str, float]:
        run = self.run
        epoch = run.progress.epoch
        self._callbacks.on_epoch_begin(epoch)
        if run.progress.step_in_epoch == 0:
            run.model.reset_metrics()
        logs: dict[str, float] = {}
        while (steps := self._next_block()) != 0:
            block = self._batches(steps)
            if not block:
                break
            logs = self._train(block)
            if run.model.stop_training:
                break
            if not self._is_last_step():
                self._inside_epoch()
        if not logs:
            raise TrainingError(
                "An epoch had no training batch. Is the data set smaller than one batch with dropped remainder?"
            )
        logs = dict(logs)
        last = epoch + 1 == run.params.epochs or run.model.stop_training
        logs |= self._validate(
            val=run.params.val_every_n.due_at_epoch(epoch + 1) or self._due("val"),
            lav=self._lav_at_epoch(epoch, last),
        )
        run.progress.epoch, run.progress.step_in_epoch = epoch + 1, 0
        if run.steps_per_epoch is None:
            self._close_stream()
            run.progress.cursor = Cursor(epoch=run.progress.cursor.epoch + (run.progress.cursor.batch > 0))
        self._callbacks.on_epoch_end(epoch, logs)
        trigger = run.params.checkpoint_every
        if trigger and (trigger.due_at_epoch(epoch + 1) or self._due("checkpoint") or last or run.model.stop_training):
            self._checkpoint()
        return logs

    # ---- steps -----------------------------------------------------------------------------------------------------

    def _next_block(self) -> int:
        """How many steps the next block may have: up to the end of the epoch or the next event, whichever is first."""
        run = self.run
        longest = self._block
        if run.steps_per_epoch is not None:
            longest = min(longest, run.steps_per_epoch - run.progress.step_in_epoch)
        for trigger in (run.params.val_every_n, run.params.lav_every_n, run.params.checkpoint_every):
            until = trigger.steps_until_due(run.progress.step)
            longest = longest if until is None else min(longest, until)
        return longest

    def _batches(self, steps: int) -> list[Batch]:
        if self._stream is None:
            repeat = self.run.steps_per_epoch is not None
            self._stream = self.run.train_data.stream(self.run.progress.cursor, repeat=repeat)
        return self._stream.take_block(steps)

    def _train(self, block: list[Batch]) -> dict[str, float]:
        progress = self.run.progress
        begun = time.perf_counter()
        steps = self.run.engine.train(_stacked(block, "inputs"), _stacked(block, "targets"))
        seconds = (time.perf_counter() - begun) / len(block)
        for logs in steps:
            if self._per_batch:
                self._callbacks.on_train_batch_begin(progress.step_in_epoch)
                self._callbacks.on_train_batch_end(progress.step_in_epoch, logs)
            progress.step += 1
            progress.step_in_epoch += 1
            if self.run.params.stop_on_nan and not math.isfinite(logs.get("loss", 0.0)):
                raise TrainingError(f"The loss is {logs['loss']} at step {progress.step} (epoch {progress.epoch + 1}).")
        progress.cursor = block[-1].cursor
        for callback in self._own:
            callback.on_block_end(len(block), steps[-1])
        # the first call compiles: its time says nothing about a step
        self._block = 2 if self._block == 1 else max(1, min(LONGEST_BLOCK, round(BLOCK_SECONDS / seconds)))
        return steps[-1]

    def _is_last_step(self) -> bool:
        return self.run.steps_per_epoch is not None and self.run.progress.step_in_epoch >= self.run.steps_per_epoch

    # ---- now and then ----------------------------------------------------------------------------------------------

    def _inside_epoch(self) -> None:
        self._validate(val=self._due("val"), lav=self._due("lav"))
        if self._due("checkpoint"):
            self._checkpoint()

    def _due(self, name: str) -> bool:
        params = self.run.params
        trigger = {"val": params.val_every_n, "lav": params.lav_every_n, "checkpoint": params.checkpoint_every}[name]
        if trigger.due_at_step(self.run.progress.step):
            return True
        return trigger.due_after(time.monotonic() - self._last_time[name])

    def _lav_at_epoch(self, epoch: int, last: bool) -> bool:
        trigger = self.run.params.lav_every_n
        return bool(trigger) and (epoch == 0 or last or trigger.due_at_epoch(epoch + 1) or self._due("lav"))

    def _validate(self, *, val: bool, lav: bool) -> dict[str, float]:
        logs: dict[str, float] = {}
        if val and self.run.val_data is not None:
            logs |= {f"val_{name}": value for name, value in self._run_validation().items()}
            self._last_time["val"] = time.monotonic()
        if lav and self._validation is not None:
            for name, source in self.run.params.gen.lav_gen().items():
                prefix = f"lav_{name}_" if name else "lav_"
                logs |= {f"{prefix}{key}": value for key, value in self._validation.run(source).items()}
            self._last_time["lav"] = time.monotonic()
        if logs:
            for callback in self._own:
                callback.on_validation(logs)
        return logs

    def _run_validation(self) -> dict[str, float]:
        """Validates with the training graph; the running values of the training are put back afterwards."""
        model, engine, pipeline = self.run.model, self.run.engine, self.run.val_data
        assert pipeline is not None
        before = [keras.ops.convert_to_numpy(variable.value) for variable in model.metrics_variables]
        model.reset_metrics()
        self._callbacks.on_test_begin()
        logs: dict[str, float] = {}
        with pipeline.stream(repeat=False) as stream:
            while block := stream.take_block(LONGEST_BLOCK):
                logs = engine.test(_stacked(block, "inputs"), _stacked(block, "targets"))
        self._callbacks.on_test_end(logs)
        for variable, value in zip(model.metrics_variables, before, strict=True):
            variable.assign(value)
        return logs

    def _checkpoint(self) -> None:
        self._save()
        self._last_time["checkpoint"] = time.monotonic()

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def _stacked(block: list[Batch], part: str) -> Arrays:
    first: dict[str, Any] = getattr(block[0], part)
    if len(block) == 1:
        return {name: array[np.newaxis] for name, array in first.items()}
    return {name: np.stack([getattr(batch, part)[name] for batch in block]) for name in first}


def _sees_batches(callback: keras.callbacks.Callback) -> bool:
    base = keras.callbacks.Callback
    hooks = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
    return any(getattr(type(callback), hook) is not getattr(base, hook) for hook in hooks)
