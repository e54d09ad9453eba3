"""The training loop: epochs, step blocks, validations and checkpoints, each at its exact step."""

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import keras

from scena import faults
from scena.data.pipeline import DataPipeline
from scena.data.sample import Batch, Cursor
from scena.errors import TrainingError
from scena.evaluation.lav import LAV
from scena.model.measures.bad_data import NOT_FINITE, check_labels, explaining_step, not_finite
from scena.model.measures.traced_checks import label_counts
from scena.model.tensorboard import split_results
from scena.training.callbacks.base import TrainerCallback
from scena.training.callbacks.keras_callbacks import BATCH_HOOKS, TEST_BATCH_HOOKS, has_hook
from scena.training.checkpoint.state import TrainingState
from scena.training.run import TrainingRun
from scena.training.steps import BLOCK_SECONDS, LONGEST_BLOCK, Validation, stacked
from scena.training.stopping import StopRequests

logger = logging.getLogger(__name__)

HINT = "--trainer.check_numerics names the first tensor that is not finite."


class TrainingLoop:
    """Runs a training from its current progress to its end.

    Args:
        lav: LAV on the prediction graph, if enabled.
        state: takes checkpoints and restores the state of callbacks.
        requests: tells whether the training should stop early.
        check: called with the first batch before the first step.
    """

    def __init__(
        self,
        run: TrainingRun,
        lav: LAV | None,
        state: TrainingState,
        requests: StopRequests,
        check: Callable[[Batch], None] | None = None,
    ) -> None:
        self.run = run
        self._check = check
        self._unseen = {"training", "validation"}
        callbacks = run.callbacks
        self._own = [callback for callback in callbacks if isinstance(callback, TrainerCallback)]
        self._callbacks = keras.callbacks.CallbackList(
            callbacks, model=run.model, epochs=run.params.epochs, steps=run.steps_per_epoch, verbose=0
        )
        asleep = [callback for callback in self._own if not callback.wants_batches()]
        self._watching = [one for one in callbacks if one not in asleep and has_hook(one, BATCH_HOOKS)]
        self._foreign_watching = any(callback not in self._own for callback in self._watching)
        self._test_watching = any(has_hook(callback, TEST_BATCH_HOOKS) for callback in callbacks)
        self._lav = lav
        self._state = state
        self._requests = requests
        self._following: list[Batch] | None = None
        self._block = 1
        self._last_time = {name: time.monotonic() for name in ("val", "lav", "checkpoint")}

    def execute(self) -> None:
        """Trains until the last epoch, or until a callback sets `model.stop_training`.

        Raises:
            StopRequested: the training has to stop; its state can be saved.
        """
        run = self.run
        run.model.stop_training = False
        self._callbacks.on_train_begin()
        try:
            while run.progress.epoch < run.params.epochs and not run.model.stop_training:
                self._epoch()
        finally:
            self._close_stream()
        self._callbacks.on_train_end(dict(run.progress.logs))

    def _epoch(self) -> None:
        run, progress = self.run, self.run.progress
        epoch = progress.epoch
        self._requests.check()
        self._callbacks.on_epoch_begin(epoch)
        if not self._state.begun:
            self._state.begin()
        if progress.step_in_epoch == 0:
            run.model.reset_metrics()
            progress.logs = {}
            run.steps.changed()  # by the reset, and by callbacks at the end of the last epoch
        elif progress.pending and not self._at_end_of_epoch():
            self._inside_epoch()  # the process that took this step ended before its validation
        while block := self._next_batches():
            if self._check is not None:
                self._check(block[0])
                self._check = None
            self._check_data(block, "training")
            self._train(block)
            progress.pending = True
            self._requests.check()
            if run.model.stop_training:
                break
            if not self._at_end_of_epoch():
                self._inside_epoch()
        if not progress.logs:
            raise TrainingError(
                "An epoch had no training batch. Is the data set smaller than one batch with dropped remainder?"
            )
        self._end_epoch(epoch)

    def _end_epoch(self, epoch: int) -> None:
        run, progress = self.run, self.run.progress
        if progress.validated is None:
            logs = dict(progress.logs)
            logs |= self._validate(val=run.params.val_every_n.due_at_epoch(epoch + 1) or self._due("val"), lav=False)
            for callback in self._own:
                callback.before_lav(epoch, logs)
            progress.validated, progress.stopped = logs, bool(run.model.stop_training)
        logs, run.model.stop_training = progress.validated, progress.stopped
        self._unseen.discard("training")
        last = epoch + 1 == run.params.epochs or run.model.stop_training
        logs = {**logs, **self._validate(val=False, lav=self._lav_at_epoch(epoch, last))}
        checkpoint_by_time = self._due("checkpoint")
        progress.epoch, progress.step_in_epoch, progress.pending, progress.validated = epoch + 1, 0, False, None
        if run.steps_per_epoch is None:
            self._close_stream()
            progress.cursor = Cursor(epoch=progress.cursor.epoch + (progress.cursor.batch > 0))
        self._callbacks.on_epoch_end(epoch, logs)
        progress.logs = logs
        progress.stopped = bool(run.model.stop_training)
        progress.finished = progress.stopped or epoch + 1 >= run.params.epochs
        trigger = run.params.checkpoint_every
        if trigger and (trigger.due_at_epoch(epoch + 1) or checkpoint_by_time or progress.finished):
            self._checkpoint()

    # ---- steps -----------------------------------------------------------------------------------------------------

    def _next_block(self) -> int:
        """The length of the next step block: up to the end of the epoch or the next event, whichever is first."""
        run = self.run
        longest = run.params.steps_per_execution or self._block
        if run.steps_per_epoch is not None:
            longest = min(longest, run.steps_per_epoch - run.progress.step_in_epoch)
        if self._foreign_watching:  # a Keras callback may look at the weights after each step
            longest = min(longest, 1)
        triggers = (run.params.val_every_n, run.params.lav_every_n, run.params.checkpoint_every)
        until = [trigger.steps_until_due(run.progress.step) for trigger in triggers]
        until += [callback.steps_until_weights(run.progress.step) for callback in self._own]
        return min([longest, *(steps for steps in until if steps is not None)])

    def _next_batches(self) -> list[Batch]:
        """The batches of the next step block; empty at the end of the epoch."""
        if self._following is None:
            self._following = self._fetch()
        block, self._following = self._following, None
        return block

    def _at_end_of_epoch(self) -> bool:
        """Whether the last step was the epoch's last; without a known length, fetches the next block to find out."""
        if self.run.steps_per_epoch is not None:
            return self.run.progress.step_in_epoch >= self.run.steps_per_epoch
        if self._following is None:
            self._following = self._fetch()
        return not self._following

    def _fetch(self) -> list[Batch]:
        run, count = self.run, self._next_block()
        if count <= 0:
            return []
        with run.stopwatch.measuring("data"):
            return run.steps.take(count, run.progress.cursor, repeat=run.steps_per_epoch is not None)

    def _train(self, block: list[Batch]) -> None:
        progress = self.run.progress
        if self._watching:
            self._callbacks.on_train_batch_begin(progress.step_in_epoch)
        begun = time.perf_counter()
        if self.run.verification is not None:
            self.run.verification.see(block[0])
        with self.run.stopwatch.measuring("step"), explaining_step(block, "a training step"):
            steps = self.run.steps.train(block)
        if self.run.steps.asked_to_stop:
            self._requests.ask("a signal to another worker")
        if self._foreign_watching:  # they run after this step and may change weights
            self.run.steps.changed()
        seconds = (time.perf_counter() - begun) / len(block)
        for position, logs in enumerate(steps):
            if self._watching:
                if position > 0:
                    self._callbacks.on_train_batch_begin(progress.step_in_epoch)
                self._callbacks.on_train_batch_end(progress.step_in_epoch, logs)
            progress.step += 1
            progress.step_in_epoch += 1
            if self.run.params.stop_on_nan and not math.isfinite(logs.get("loss", 0.0)):
                why = not_finite(block[position]) or HINT
                raise TrainingError(
                    f"The loss is {logs['loss']} at step {progress.step} (epoch {progress.epoch + 1}). "
                    f"{why[0].upper()}{why[1:].rstrip('.')}."
                )
        progress.cursor = block[-1].cursor
        progress.logs = dict(steps[-1])
        for callback in self._own:
            callback.on_block_end(len(block), steps[-1])
        # the first call compiles, so its time is not that of a step
        self._block = 2 if self._block == 1 else max(1, min(LONGEST_BLOCK, round(BLOCK_SECONDS / seconds)))

    # ---- periodic work ---------------------------------------------------------------------------------------------

    def _inside_epoch(self) -> None:
        logs = self._validate(val=self._due("val"), lav=self._due("lav"))
        if logs:
            for callback in self._own:
                callback.inside_epoch(logs)
        self.run.progress.pending = False
        if self._due("checkpoint"):
            self._checkpoint()

    def _due(self, name: str) -> bool:
        params = self.run.params
        if name in self.run.requested:
            self.run.requested.discard(name)
            return True
        trigger = {"val": params.val_every_n, "lav": params.lav_every_n, "checkpoint": params.checkpoint_every}[name]
        if trigger.due_at_step(self.run.progress.step):
            return True
        if trigger and name == "checkpoint" and faults.happens("checkpoint", 2):
            return True
        return trigger.due_after(time.monotonic() - self._last_time[name])

    def _lav_at_epoch(self, epoch: int, last: bool) -> bool:
        trigger = self.run.params.lav_every_n
        if epoch + 1 < self.run.params.lav_min_epoch and not last:
            return False
        return bool(trigger) and (epoch == 0 or last or trigger.due_at_epoch(epoch + 1) or self._due("lav"))

    def _validate(self, *, val: bool, lav: bool) -> dict[str, float]:
        if not (val and self.run.val_data is not None) and not (lav and self._lav is not None):
            return {}
        with self.run.stopwatch.measuring("validation"), self.run.averaged_weights():
            return self._results(val=val, lav=lav)

    def _results(self, *, val: bool, lav: bool) -> dict[str, float]:
        logs: dict[str, float] = {}
        data: dict[str, Any] = {}
        if val and self.run.val_data is not None:
            numbers, shown = self._run_validation(self.run.val_data)
            logs |= {f"val_{name}": value for name, value in numbers.items()}
            data |= {f"val_{name}": value for name, value in split_results(shown)[1].items()}
            self._last_time["val"] = time.monotonic()
        if lav and self._lav is not None:
            for name, source in self.run.params.gen.lav_gen().items():
                prefix = f"lav_{name}_" if name else "lav_"
                # the check after each batch lets a long LAV be stopped
                results = self._lav.run(source, lambda samples: self._requests.check())
                numbers, more = split_results(results)
                logs |= {f"{prefix}{key}": value for key, value in numbers.items()}
                data |= {f"{prefix}{key}": value for key, value in more.items()}
            self._last_time["lav"] = time.monotonic()
        # last, when nothing can be interrupted any more: a resumed run must not write these again
        if data:
            for callback in self._own:
                callback.on_data(data)
        if logs:
            for callback in self._own:
                callback.on_validation(logs)
        return logs

    def _run_validation(self, pipeline: DataPipeline) -> Validation:
        """Validates with the training graph and restores the running metrics of the training."""
        model = self.run.model
        before = [keras.ops.convert_to_numpy(variable.value) for variable in model.metrics_variables]
        model.reset_metrics()
        self._callbacks.on_test_begin()
        try:
            logs, shown = self.run.steps.validate(pipeline, self._validated)
        finally:
            self.run.steps.changed()
            for variable, value in zip(model.metrics_variables, before, strict=True):
                variable.assign(value)
        self._callbacks.on_test_end(logs)
        return logs, shown

    def _validated(self, pipeline: DataPipeline) -> Validation:
        model: Any = self.run.model
        logs: dict[str, float] = {}
        number = 0
        with pipeline.stream(repeat=False) as stream:
            while block := stream.take_block(1 if self._test_watching else LONGEST_BLOCK):
                if self.run.verification is not None:
                    self.run.verification.see(block[0], validation=True)
                if self._test_watching:
                    self._callbacks.on_test_batch_begin(number)
                self._check_data(block, "validation")
                with explaining_step(block, "the validation"):
                    logs = self.run.engine.test(stacked(block, "inputs"), stacked(block, "targets"))
                self._check_finite(logs, block)
                if self._test_watching:
                    self._callbacks.on_test_batch_end(number, logs)
                number += len(block)
                self._requests.check()
        self._unseen.discard("validation")
        return logs, model.data_results()

    def _check_data(self, block: list[Batch], where: str) -> None:
        """Refuses labels that would become one-hot vectors of zeros; warns of samples that are not finite.

        A layer may turn NaN into a number (relu makes it 0), so a finite loss proves nothing. One epoch is enough to see all samples.
        """
        if not self.run.params.sanity_check:
            return
        if where in self._unseen and not self.run.not_finite_reported:
            found = not_finite(*block, allow_nan=self.run.built.data.allow_nan)
            if found:
                self.run.not_finite_reported = True
                logger.warning(NOT_FINITE, where, found)
        if self.run.label_counts is None:
            model: Any = self.run.model
            first = block[0]
            self.run.label_counts = label_counts(model.measures, self.run.built.root, first.inputs, first.targets)
        for batch in block:
            check_labels(batch, self.run.label_counts)

    def _check_finite(self, logs: dict[str, float], block: list[Batch]) -> None:
        """Raises if bad data makes the loss not finite; a diverging model is reported by the training steps."""
        stop = self.run.params.stop_on_nan and not math.isfinite(logs.get("loss", 0.0))
        if stop and (why := not_finite(*block)):
            raise TrainingError(f"The validation loss is {logs['loss']}: {why}.")

    def _checkpoint(self) -> None:
        with self.run.stopwatch.measuring("checkpoint"):
            self._state.save()
        self._last_time["checkpoint"] = time.monotonic()

    def _close_stream(self) -> None:
        self._following = None
        self.run.steps.close()
