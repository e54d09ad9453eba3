"""Whether the suggestions of `scena lr-find` train: each one beside a grid of rates, on every example.

    python -m benchmarks.lr_find [--examples NAME…] [--seed 1] [--scale 1] [--grid-only] [--out FILE] [--data FOLDER]

An example is trained with eleven constant rates from 1e-5 to 1, in half decades, and with the suggested one, each time from the same
weights, with the same batches and for the same number of steps. What counts is the lowest of six validation losses at equal distances, on
all validation data: that of the model which a training keeps as its best. Steps are fixed rather than seconds, so that a busy machine gives
the same result. `lr-find` gets a budget of four times these steps, as its default of four minutes is four times the minute of a training.

Rates are tried from the middle outwards. Hopeless ones end early, after a third of their steps at least, and those beyond them are skipped.
The trials of `lr-find` start from the same weights and see the same batches, so they are beginnings of trainings of the grid, which
validate where they do, and are not repeated. Each training is added to the file when it ends, and not computed again.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1")

from benchmarks.example_data import create_trainer, make_data
from scena.training.schedules.params import RateFinderParams
from scena.training.schedules.rate_finder import prepare_trials, range_tests_and_trials
from scena.training.schedules.rate_search import VALIDATIONS, rounds, validation_places
from scena.training.schedules.rate_trials import Trials
from scena.training.trigger import Trigger

RATES = [10.0 ** (-5 + half / 2) for half in range(11)]
COUNTED = 6
"""Validations of a training; the longest trials of `lr-find` end with the fourth."""
THIRD = 2
"""Validations of a hopeless one."""
BEHIND = {THIRD: 3.0, 3: 2.0, 4: 1.5, 5: 1.25}
"""A rate is hopeless if its loss is this many times that of another one after as many validations, or after a third above that of the next
rate towards the middle, which is hopeless or ended worse than good."""
WITHIN = 1.1
"""A rate is good if its loss is at most this many times the best one of the grid."""
LEARNED = 0.01
"""A suggestion will also do if both losses are below this share of the untrained loss: hardly a sample is left to tell them apart."""
STEPS = {
    "examples.tutorial.min": 14000,
    "examples.tutorial.full": 15000,
    "examples.tabular": 34000,
    "examples.tagging": 970,
    "examples.imageclassification": 980,
    "examples.seq2seq": 1160,
    "examples.atr": 350,
    "examples.faces": 350,
    "examples.text.finetuningbert": 87,
    "examples.template.general": 91000,
    "examples.template.listfile": 39000,
    "examples.template.table": 53000,
}
"""Steps of each training, about: what one thread of a quiet machine does in a minute."""


def main() -> None:
    """Measures what is missing in the file, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", nargs="*", default=list(STEPS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1, help="times the steps of each training")
    parser.add_argument("--grid-only", action="store_true", help="without lr-find")
    parser.add_argument("--out", type=Path, default=Path("lr_find.json"))
    parser.add_argument("--data", type=Path, default=Path("lr_find_data"), help="where made data is written")
    options = parser.parse_args()
    make_data(options.data)
    done: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.examples:
        steps = round(STEPS[name] * options.scale)
        mine = done.setdefault(f"{name} steps {steps} seed {options.seed}", {"trainings": {}})
        for _ in measured(name, steps, options.seed, mine, options.data, not options.grid_only):
            options.out.write_text(json.dumps(done, indent=1))
        print(judged(name, mine), flush=True)


def measured(name: str, steps: int, seed: int, mine: dict[str, Any], data: Path, find: bool) -> Iterator[None]:
    """Adds what is missing to the results of an example, one by one."""
    missing = [rate for rate in RATES if _key(rate) not in mine["trainings"]]
    if (not missing and not find) or "suggestion" in mine:
        return
    finder = RateFinderParams(budget=Trigger(4 * steps, "steps"))
    run = prepare_trials(*create_trainer(name, seed, data), None)
    everything = run.val_data
    assert everything is not None
    if (everything.samples_per_epoch() or math.inf) > finder.validation_samples:
        run = prepare_trials(*create_trainer(name, seed, data), finder.validation_samples)
    trials = GridTrials(run, everything, rounds(4 * steps), mine["trainings"])
    mine["untrained"] = trials.validate_everything()
    for rate in sorted(missing, key=_from_middle):
        print(name, trials.record(rate), flush=True)
        yield
    if find:
        found = range_tests_and_trials(finder, run, trials)
        mine |= {"suggestion": found.suggestion, "refusal": found.refusal, "tests": found.tests}
        mine["trials"] = [[trial.rate, trial.steps, trial.loss] for trial in found.trials]
        print(f"{name}: {found.suggestion} {found.refusal} {mine['trials']}", flush=True)
        if found.suggestion is not None and not mine["trainings"].get(_key(found.suggestion), {}).get("whole"):
            print(name, trials.record(found.suggestion, hopeful=True), flush=True)
        yield


class HopelessError(Exception):
    """A training will not be among the best."""


class GridTrials(Trials):
    """Trainings of the grid; those of `lr-find` that are their beginnings are not repeated.

    Args:
        run: validates on the samples that `lr-find` takes.
        everything: all validation data.
        lengths: the steps of the trials of `lr-find`.
        trainings: gets the results.
    """

    def __init__(self, run: Any, everything: Any, lengths: list[int], trainings: dict[str, Any]) -> None:
        super().__init__(run)
        self._everything, self._trainings = everything, trainings
        self._places = [lengths[-1] * number // VALIDATIONS for number in range(1, COUNTED + 1)]
        self._all_places = sorted(
            {*self._places, *(place for length in lengths for place in validation_places(length))}
        )
        self._recorded: dict[str, Any] | None = None
        self._hopeful = False

    def record(self, rate: float, *, hopeful: bool = False) -> str:
        """Trains at a rate, to the end if `hopeful`; not at all if a rate between it and the middle is hopeless."""
        begun, self._hopeful = time.process_time(), hopeful
        recorded = {"rate": rate, "steps": self._places[-1], "losses": [], "seen": {}, "whole": False}
        if not hopeful and any(
            not other["whole"] and _from_middle(other["rate"]) < _from_middle(rate)
            for other in self._trainings.values()
            if (other["rate"] < RATES[5]) == (rate < RATES[5])
        ):
            self._trainings[_key(rate)] = recorded | {"diverged": False}
            return f"{rate:.2g}: beyond a hopeless rate"
        self._recorded = recorded
        try:
            recorded["diverged"] = (
                self.train(rate, self._places[-1], validate_at=self._all_places).steps < self._places[-1]
            )
            recorded["whole"] = True
        except HopelessError:
            recorded["diverged"] = False
        self._recorded, self._trainings[_key(rate)] = None, recorded
        return f"{rate:.2g}: {reached(recorded):.4g} {recorded['losses']} {time.process_time() - begun:.1f} s"

    def validate(self) -> float:
        loss = super().validate()
        if self._recorded is not None:
            place = self._all_places[len(self._recorded["seen"])]
            self._recorded["seen"][str(place)] = loss
            if place in self._places:
                self._recorded["losses"].append(self.validate_everything(loss))
                if not self._hopeful and self._is_hopeless(self._recorded):
                    raise HopelessError
        return loss

    def validate_everything(self, loss: float | None = None) -> float:
        """The loss on all validation data, which is `loss` if `lr-find` takes them all."""
        few = self._run.val_data
        if loss is not None and few is self._everything:
            return loss
        self._run.val_data = self._everything
        try:
            return super().validate()
        finally:
            self._run.val_data = few

    def loss_reached(self, rate: float, steps: int) -> float:
        recorded, places = self._trainings.get(_key(rate)), [str(place) for place in validation_places(steps)]
        if recorded is None or (not recorded["whole"] and places[-1] not in recorded["seen"]):
            return super().loss_reached(rate, steps)
        return (
            min(recorded["seen"].get(place, math.inf) for place in places)
            if places[-1] in recorded["seen"]
            else math.inf
        )

    def _is_hopeless(self, recorded: dict[str, Any]) -> bool:
        now, count = min(recorded["losses"]), len(recorded["losses"])
        others = [other for other in self._trainings.values() if len(other["losses"]) >= count]
        if any(now > BEHIND.get(count, math.inf) * min(other["losses"][:count]) for other in others):
            return True
        if count != THIRD:
            return False
        best = min(map(reached, others), default=math.inf)
        return any(
            _from_middle(other["rate"]) < _from_middle(recorded["rate"])
            and abs(math.log10(other["rate"] / recorded["rate"])) < 0.6
            and now > min(other["losses"][:THIRD])
            and (not other["whole"] or reached(other) > WITHIN * best)
            for other in others
        )


def _key(rate: float) -> str:
    return f"{rate:.2g}"


def _from_middle(rate: float) -> float:
    return abs(math.log10(rate / RATES[5]))


def reached(recorded: dict[str, Any]) -> float:
    """The lowest loss; infinite if the training diverged."""
    return min(recorded["losses"]) if recorded["losses"] and not recorded["diverged"] else math.inf


def judged(name: str, mine: dict[str, Any]) -> str:
    """A row of the table."""
    grid = [mine["trainings"][_key(rate)] for rate in RATES]
    best, untrained, suggestion = min(grid, key=reached), mine["untrained"], mine.get("suggestion")
    lowest = reached(best)
    row = f"| `{name.removeprefix('examples.')}` | {best['steps']} | {untrained:.3g} |"
    if suggestion is None:
        return f"{row} none | | {best['rate']:.2g} | {lowest:.3g} | {mine.get('refusal', '')} |"
    loss = reached(mine["trainings"][_key(suggestion)])
    verdict = " (learned)" if loss > WITHIN * lowest and max(loss, lowest) <= LEARNED * untrained else ""
    return f"{row} {suggestion:.2g} | {loss:.3g} | {best['rate']:.2g} | {lowest:.3g} | {loss / lowest:.2f}{verdict} |"


if __name__ == "__main__":
    main()
