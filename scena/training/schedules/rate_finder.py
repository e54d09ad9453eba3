"""Finding a learning rate: a range test (Smith 2017) shows where to look, short trainings show which rate is best.

The range test is one training whose rate grows from tiny to far too large; if noise hides where its loss falls, it is repeated with other
batches and averaged. Its curve cannot show what a rate leads to later on.
"""

import logging
import math
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scena.backends.selection import check_backend
from scena.data.pipeline import BatchStream
from scena.display import Move
from scena.errors import TrainingError
from scena.plots import draw_curves
from scena.training.prepare import prepare_run
from scena.training.run import TrainingRun
from scena.training.schedules.params import RateFinderParams, ReduceOnPlateau
from scena.training.schedules.rate_search import VALIDATIONS, Trial, best_of, rounds, search
from scena.training.schedules.rate_suggestion import NoisyLossError, places, smooth, suggest
from scena.training.schedules.rate_trials import Trials
from scena.training.steps import stacked
from scena.training.trigger import Trigger

logger = logging.getLogger(__name__)

DIVERGED = 3.0
"""Ends when the loss is this many times its first value, or its first spread if that is more, above its highest first value,"""
FIRST = 0.25
"""which is that of this share of the batches."""
RECENT = 5
"""Batches whose mean decides about that."""
SPEED_SECONDS = 2.0
"""How long a training shows how many steps fit into a budget of time."""
RANGE_TESTS = 4
"""How many range tests there are at most."""
TRIALS = 15
"""How many trials there are, as a rule."""


@dataclass
class FoundRates:
    """What was tried and what came of it."""

    rates: list[float]
    losses: list[float]
    smoothed: list[float]
    suggestion: float | None
    refusal: str = ""
    """Why nothing can be suggested."""
    noisy: bool = False
    """Whether that is because of noise."""
    tests: int = 1
    """How many range tests there were; `losses` are their means."""
    trials: list[Trial] = field(default_factory=list)
    """Trainings at some rates, compared by validation loss."""
    untrained: float = math.nan
    """The validation loss before them."""
    measure: str = "val_loss"
    """What is compared, if the validation has no loss."""
    note: str = ""
    """Why there are none."""

    def table(self) -> list[str]:
        """The losses of the trials: a row for each rate, a column for each length."""
        lengths = sorted({trial.steps for trial in self.trials})
        losses = {(trial.rate, trial.steps): f"{trial.loss:.4g}" for trial in self.trials}
        heads = "".join(f"{f'{length} steps':>14}" for length in lengths)
        rows = [
            f"{rate:<8.2g}" + "".join(f"{losses.get((rate, length), ''):>14}" for length in lengths)
            for rate in sorted({trial.rate for trial in self.trials})
        ]
        return [f"{'rate':<8}{heads}", *map(str.rstrip, rows)] if rows else []

    def draw(self, path: Path) -> None:
        """Writes the plot."""
        title = "no suggestion" if self.suggestion is None else f"{self.suggestion:.2g}"
        draw_curves(
            path,
            [("loss", self.rates, self.losses), ("smoothed", self.rates, self.smoothed)],
            title=f"Learning-rate finder: {title}",
            labels=("learning rate", "loss"),
            logarithmic=True,
            mark=self.suggestion,
            highest=2 * max(self.smoothed[: max(1, len(self.smoothed) // 4)]) if self.smoothed else None,
        )


def find_rate(
    params: RateFinderParams, trainer_params: Any, scenario: Any, progress: Move = lambda count, total=None: None
) -> FoundRates:
    """Bounds the rate by range tests, then compares trainings at some rates around it by their validation loss.

    Args:
        params: what to try.
        trainer_params: all parameters of the training; its schedule is not used.
        scenario: the scenario with these parameters.
        progress: called with the number of steps that were taken, and of all steps when it is known.
    """
    check_backend(trainer_params, "trainer")
    if trainer_params.device.dist_strategy != "default":
        raise TrainingError(
            "A learning rate is looked for on one device; it is that of the whole batch, so it holds for several too. "
            f"Leave out --device.dist_strategy {trainer_params.device.dist_strategy}."
        )
    then = (
        f", then trainings of about {params.budget.amount:g} {params.budget.unit} together (--budget)"
        if params.budget
        else ""
    )
    logger.info("A range test of %d batches%s.", params.steps, then)
    run = prepare_trials(trainer_params, scenario, params.validation_samples)
    return range_tests_and_trials(params, run, Trials(run, progress), progress)


def range_tests_and_trials(
    params: RateFinderParams, run: TrainingRun, trials: Trials, progress: Move = lambda count, total=None: None
) -> FoundRates:
    """`find_rate` with a run that is prepared for its `trials`."""
    found = _range_tests(params, run, trials, progress)
    if found.suggestion is None or not params.budget:
        return found
    if run.val_data is None:
        found.note = "there is no validation data, so no trainings were compared"
        return found
    return compare(params, trials, found, progress)


def prepare_trials(trainer_params: Any, scenario: Any, validation_samples: int | None) -> TrainingRun:
    """A run for `Trials`; it validates on a part of the data that is drawn by the seed, if there is more."""
    trainer_params.random_seed = trainer_params.random_seed or 0
    trainer_params.learning_rate = ReduceOnPlateau(lr=1.0)
    trainer_params.val_every_n = Trigger(1)  # a scenario may leave the validation to LAV
    if validation_samples is not None:
        val = trainer_params.gen.val
        val.limit = min(val.limit or validation_samples, validation_samples)
    return prepare_run(trainer_params, scenario, Path("."))


def _range_tests(params: RateFinderParams, run: TrainingRun, trials: Trials, progress: Move) -> FoundRates:
    """Repeats the range test while noise hides the fall of the loss, and while that takes no more than the budget of the trials."""
    rates = np.geomspace(params.lowest, params.highest, params.steps).tolist()
    tests: list[list[float]] = []
    begun = time.monotonic()
    with run.train_data.stream(repeat=True) as stream:
        while True:
            trials.reset()
            tests.append(_range_test(run, trials, rates, stream, progress))
            count = min(map(len, tests))
            found = judge(
                rates[:count],
                np.mean([losses[:count] for losses in tests], axis=0).tolist(),
                params.smoothing,
                len(tests),
            )
            taken = time.monotonic() - begun if params.budget.unit == "seconds" else params.steps * len(tests)
            if not found.noisy or len(tests) == RANGE_TESTS or 0 < params.budget.amount < taken * (1 + 1 / len(tests)):
                return found
            logger.info("The loss is too noisy to see where it falls. The range test is repeated with other batches.")
            progress(0, params.steps * (len(tests) + 1))


def _range_test(
    run: TrainingRun, trials: Trials, rates: list[float], stream: BatchStream, progress: Move
) -> list[float]:
    """The loss of each batch while the rate grows, until it diverges."""
    losses: list[float] = []
    recent: deque[float] = deque(maxlen=RECENT)
    first, limit = max(RECENT, round(FIRST * len(rates))), math.inf
    for rate in rates:
        block = stream.take_block(1)
        run.model.reset_metrics()
        trials.set_rate(rate)
        loss = run.engine.train(stacked(block, "inputs"), stacked(block, "targets"))[0]["loss"]
        if not math.isfinite(loss):
            break
        losses.append(loss)
        recent.append(loss)
        progress(1)
        if len(losses) == first:
            highest, lowest = max(losses), min(losses)
            limit = highest + DIVERGED * max(abs(sum(losses) / first), highest - lowest)
        if sum(recent) / len(recent) > limit:
            break
    return losses


def compare(params: RateFinderParams, trials: Trials, found: FoundRates, progress: Move) -> FoundRates:
    """Adds the trials, and what they suggest, to what a range test found."""
    assert found.suggestion is not None
    trials.reset()
    found.untrained, found.measure = trials.validate(), trials.measure
    budget = int(params.budget.amount)
    if params.budget.unit == "seconds":
        budget = _affordable_steps(params.budget.amount, trials, found.suggestion)
    try:
        lengths = rounds(budget)
        progress(0, params.steps * found.tests + budget)
        logger.info(
            "The range test points to %.2g. Trainings of %s steps compare rates around it (--budget %s: about %d steps).",
            found.suggestion,
            ", ".join(map(str, lengths)),
            params.budget.to_param(),
            budget,
        )

        def measure(rate: float, steps: int) -> float:
            loss = trials.loss_reached(rate, steps)
            logger.info("%d steps at %.2g: %s %.4g", steps, rate, found.measure, loss)
            return loss

        found.trials = search(found.suggestion, measure, lengths, found.untrained, params.lowest, params.highest)
        found.suggestion = best_of(found.trials, found.untrained)
    except TrainingError as error:
        found.suggestion, found.refusal = None, str(error)
    return found


def _affordable_steps(seconds: float, trials: Trials, rate: float) -> int:
    """How many steps fit into a time beside the validations of the trials. The model has validated once: that compiled it."""
    begun = time.monotonic()
    trials.validate()
    validated = time.monotonic()
    steps = trials.train(rate, sys.maxsize, SPEED_SECONDS).steps
    speed = steps / (time.monotonic() - validated)
    return int(speed * max(seconds - TRIALS * VALIDATIONS * (validated - begun), seconds / 2))


def judge(rates: list[float], losses: list[float], smoothing: float, tests: int = 1) -> FoundRates:
    """The suggestion, or why there is none."""
    smoothed = smooth(np.asarray(losses), places(rates, smoothing)).tolist() if len(rates) > 1 else losses
    try:
        return FoundRates(rates, losses, smoothed, suggest(rates, losses, smoothing, tests), tests=tests)
    except TrainingError as error:
        return FoundRates(rates, losses, smoothed, None, str(error), isinstance(error, NoisyLossError), tests)
