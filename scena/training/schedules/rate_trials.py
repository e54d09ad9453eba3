"""Short trainings at one learning rate each, all from the same weights and with the same batches, compared by validation."""

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from scena.display import Move
from scena.errors import TrainingError
from scena.evaluation.lav import LAV
from scena.model.state.randomness import global_seed_variables
from scena.model.tensorboard import split_results
from scena.training.callbacks.monitored import MonitoredCallback
from scena.training.checkpoint.state import describe_variables, read_variables, variable_groups, write_variables
from scena.training.run import TrainingRun
from scena.training.schedules.rate_search import validation_places
from scena.training.steps import BLOCK_SECONDS, LONGEST_BLOCK, stacked


class Trained(NamedTuple):
    """A training that is over."""

    steps: int
    losses: list[float]
    """Of its validations."""


class Trials:
    """Trains a prepared run again and again from its first state. Nothing is written.

    Args:
        run: a run whose schedule is ReduceOnPlateau with a rate of 1: its factor is a variable, which is set to each rate in turn.
        progress: called with the number of steps that were taken.
    """

    def __init__(self, run: TrainingRun, progress: Move = lambda count, total=None: None) -> None:
        self._run = run
        self._progress = progress
        self._lav: LAV | None = None
        self.measure = "val_loss"
        """What `validate` returns."""
        self._first = {name: np.array(value) for name, value in read_variables(self._groups()).items()}

    def reset(self) -> None:
        """Goes back to the first state."""
        write_variables(self._groups(), self._first, describe_variables(self._groups()))

    def set_rate(self, rate: float) -> None:
        """Sets the learning rate of the following steps."""
        self._run.schedule.scale.assign(rate)

    def train(self, rate: float, steps: int, seconds: float = math.inf, validate_at: Sequence[int] = ()) -> Trained:
        """Trains from the first state.

        Args:
            rate: the learning rate.
            steps: the number of steps; fewer are counted if the loss is not a number.
            seconds: ends the training earlier.
            validate_at: the steps after which it validates.
        """
        run, done, block_length = self._run, 0, 1
        losses: list[float] = []
        self.reset()
        self.set_rate(rate)
        end = time.monotonic() + seconds
        with run.train_data.stream(repeat=True) as stream:
            while done < steps and time.monotonic() < end:
                until = next((step for step in validate_at if step > done), steps)
                block = stream.take_block(min(block_length, until - done))
                stream.make_ahead(len(block))
                begun = time.monotonic()
                run.model.reset_metrics()
                logs = run.engine.train(stacked(block, "inputs"), stacked(block, "targets"))
                block_length = max(
                    1, min(LONGEST_BLOCK, round(BLOCK_SECONDS * len(block) / (time.monotonic() - begun)))
                )
                done += len(block)
                self._progress(len(block))
                if not math.isfinite(logs[-1]["loss"]):
                    return Trained(done - 1, losses)
                if done in validate_at:
                    losses.append(self.validate())
        return Trained(done, losses)

    def validate(self) -> float:
        """The validation loss of the present weights; infinite if it is not a number.

        If the validation has no loss, it is the value that selects the best model; 1 minus it if a high value is good.
        """
        with self._run.averaged_weights():
            logs = self._validation_results()
            if "val_loss" in logs:
                value = logs["val_loss"]
            else:
                best = self._best()
                found = best.find(logs if best.source == "val" else self._lav_results())
                value = math.nan if found is None else found if best.mode == "min" else 1 - found
                self.measure = best.key if best.mode == "min" else f"1 - {best.key}"
        return value if math.isfinite(value) else math.inf

    def _validation_results(self) -> dict[str, float]:
        run, logs = self._run, {}
        assert run.val_data is not None
        run.model.reset_metrics()
        with run.val_data.stream(repeat=False) as stream:
            while block := stream.take_block(LONGEST_BLOCK):
                logs = run.engine.test(stacked(block, "inputs"), stacked(block, "targets"))
        return {f"val_{name}": value for name, value in logs.items()}

    def _lav_results(self) -> dict[str, float]:
        params = self._run.params
        self._lav = self._lav or self._run.scenario.create_training_lav(self._run.built, params)
        logs: dict[str, float] = {}
        for name, source in params.gen.lav_gen().items():
            prefix = f"lav_{name}_" if name else "lav_"
            logs |= {f"{prefix}{key}": value for key, value in split_results(self._lav.run(source))[0].items()}
        return logs

    def _best(self) -> MonitoredCallback:
        """What selects the best model."""
        best = MonitoredCallback()
        best.set_run(self._run)
        if best.source == "train":
            raise TrainingError(
                "Learning rates cannot be compared: the validation has no loss, and the best model is chosen by the training's "
                f"{best.key!r}. Name a value of the validation or of LAV: --trainer.best, such as max:val_acc."
            )
        return best

    def loss_reached(self, rate: float, steps: int) -> float:
        """The lowest validation loss within a training, which is that of its best model; infinite if the training diverges."""
        trained = self.train(rate, steps, validate_at=validation_places(steps))
        return min(trained.losses) if trained.steps == steps and trained.losses else math.inf

    def _groups(self) -> dict[str, list[Any]]:
        return {**variable_groups(self._run.model), "random": global_seed_variables()}
