"""Short trainings at one learning rate each, all from the same weights and with the same batches, compared by validation loss."""

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from scena.display import Move
from scena.model.state.variables import global_seed_variables
from scena.training.checkpoint.state import describe_variables, read_variables, variable_groups, write_variables
from scena.training.loop import BLOCK_SECONDS, LONGEST_BLOCK, stacked
from scena.training.run import TrainingRun

VALIDATIONS = 4
"""In each training, at equal distances."""


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
        """The validation loss of the present weights; infinite if it is not a number."""
        run, logs = self._run, {"loss": math.nan}
        assert run.val_data is not None
        run.model.reset_metrics()
        with run.averaged_weights(), run.val_data.stream(repeat=False) as stream:
            while block := stream.take_block(LONGEST_BLOCK):
                logs = run.engine.test(stacked(block, "inputs"), stacked(block, "targets"))
        return logs["loss"] if math.isfinite(logs["loss"]) else math.inf

    def loss_reached(self, rate: float, steps: int, validations: int = VALIDATIONS) -> float:
        """The lowest validation loss within a training, which is that of its best model; infinite if the training diverges."""
        places = sorted({max(1, steps * number // validations) for number in range(1, validations + 1)})
        trained = self.train(rate, steps, validate_at=places)
        return min(trained.losses) if trained.steps == steps and trained.losses else math.inf

    def _groups(self) -> dict[str, list[Any]]:
        return {**variable_groups(self._run.model), "random": global_seed_variables()}
