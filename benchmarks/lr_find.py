"""Whether the suggestions of `scena lr-find` train: each one beside a grid of rates, on every example.

    python -m benchmarks.lr_find [--examples NAME…] [--seed 1] [--scale 1] [--grid-only] [--validations 8] [--out FILE] [--data FOLDER]

An example is trained with eleven constant rates from 1e-5 to 1, in half decades, and with the suggested one, each time from the same
weights, with the same batches and for the same number of steps: about 60 seconds of one thread. What counts is the lowest of eight
validation losses at equal distances, on all validation data: that of the model which a training keeps as its best. Steps are fixed rather
than seconds, so that a busy machine gives the same result. `lr-find` gets a budget of four times these steps, as its default of four
minutes is four times the minute of a training. The seed decides weights and batches of the grid and of `lr-find`. Each training
is added to the file when it ends, and what is there is not computed again.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1")

import numpy as np

from scena.params import parse, root_of
from scena.scenario.finding import find_scenario

RATES = [10.0 ** (-5 + half / 2) for half in range(11)]
WITHIN = 1.1
"""A suggestion is good if its loss is at most this many times the best one of the grid,"""
LEARNED = 0.01
"""or if both are below this share of the untrained loss: then the task is learned, and hardly a sample is left to tell them apart."""
STEPS = {
    "examples.tutorial.min": 5000,
    "examples.tutorial.full": 5000,
    "examples.tabular": 10000,
    "examples.tagging": 800,
    "examples.imageclassification": 500,
    "examples.seq2seq": 640,
    "examples.atr": 256,
    "examples.faces": 160,
    "examples.text.finetuningbert": 56,
    "examples.template.general": 50000,
    "examples.template.listfile": 30000,
    "examples.template.table": 50000,
}
"""Steps of each training."""
COUNTED = 8
"""Validations of a training that count."""


def main() -> None:
    """Measures what is missing in the file, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", nargs="*", default=list(STEPS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1, help="times the steps of each training")
    parser.add_argument("--grid-only", action="store_true", help="without lr-find")
    parser.add_argument("--validations", type=int, default=COUNTED, help="how many are recorded, a multiple of 8")
    parser.add_argument("--out", type=Path, default=Path("lr_find.json"))
    parser.add_argument("--data", type=Path, default=Path("lr_find_data"), help="where made data is written")
    options = parser.parse_args()
    make_data(options.data)
    done: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.examples:
        steps = round(STEPS[name] * options.scale)
        mine = done.setdefault(f"{name} steps {steps} seed {options.seed}", {"curves": {}})
        measuring = Measuring(name, steps, options.seed, mine, options.data)
        for rate in RATES if options.grid_only else [*RATES, measuring.suggestion()]:
            if rate is not None and measuring.train(rate, options.validations):
                options.out.write_text(json.dumps(done, indent=1))
        print(judged(name, steps, mine), flush=True)


class Measuring:
    """Trainings of one example; `mine` gets their results."""

    def __init__(self, name: str, steps: int, seed: int, mine: dict[str, Any], data: Path) -> None:
        self.name, self.steps, self.seed, self.mine, self.data = name, steps, seed, mine, data
        self._trials: Any = None

    def train(self, rate: float, validations: int) -> bool:
        """Trains at a rate unless that was done before."""
        from scena.training.schedules.rate_finder import prepare_trials
        from scena.training.schedules.rate_trials import Trials

        if f"{rate:.2g}" in self.mine["curves"]:
            return False
        if self._trials is None:
            self._trials = Trials(prepare_trials(*self._trainer(), None))
            self.mine["untrained"] = self._trials.validate()
        begun = time.process_time()
        places = [self.steps * number // validations for number in range(1, validations + 1)]
        losses = self._trials.train(rate, self.steps, validate_at=places).losses
        losses += [math.inf] * (validations - len(losses))
        self.mine["curves"][f"{rate:.2g}"] = losses
        print(f"{self.name} {rate:.2g}: {reached(losses):.4g}, {time.process_time() - begun:.1f} s", flush=True)
        return True

    def suggestion(self) -> float | None:
        """What `lr-find` suggests."""
        from scena.training.schedules.params import RateFinderParams
        from scena.training.schedules.rate_finder import find_rate
        from scena.training.trigger import Trigger

        if "suggestion" not in self.mine:
            found = find_rate(RateFinderParams(budget=Trigger(4 * self.steps, "steps")), *self._trainer())
            self.mine["suggestion"], self.mine["refusal"] = found.suggestion, found.refusal
            self.mine["trials"] = [[trial.rate, trial.steps, trial.loss] for trial in found.trials]
            print(f"{self.name}: {found.suggestion} {found.refusal} {self.mine['trials']}", flush=True)
        return self.mine["suggestion"]

    def _trainer(self) -> tuple[Any, Any]:
        """The parameters and the scenario of the example."""
        scenario = find_scenario(self.name)
        flags = flags_of(self.name, self.data)
        params = parse(root_of(trainer=scenario.default_trainer_params()), flags, prog=self.name).params.trainer
        params.random_seed = self.seed
        trainer = scenario.create_trainer(params)
        return trainer.params, trainer.scenario


def reached(losses: list[float]) -> float:
    """The lowest of the validations that count; infinite if the training diverged."""
    each = len(losses) // COUNTED
    return min(losses[each - 1 :: each]) if math.isfinite(losses[-1]) else math.inf


def judged(name: str, steps: int, mine: dict[str, Any]) -> str:
    """A row of the table."""
    losses = {rate: reached(mine["curves"][f"{rate:.2g}"]) for rate in RATES}
    best = min(RATES, key=lambda rate: losses[rate])
    grid, untrained, rate = losses[best], mine["untrained"], mine.get("suggestion")
    if rate is None:
        return f"| `{name}` | {steps} | {untrained:.3g} | {mine.get('refusal', '')} | | {best:.2g} | {grid:.3g} | | |"
    loss = reached(mine["curves"][f"{rate:.2g}"])
    learned = max(loss, grid) <= LEARNED * untrained
    verdict = "good" if loss <= WITHIN * grid else "learned" if learned else "worse"
    return f"| `{name}` | {steps} | {untrained:.3g} | {rate:.2g} | {loss:.3g} | {best:.2g} | {grid:.3g} | {loss / grid:.2f} | {verdict} |"


def flags_of(name: str, data: Path) -> list[str]:
    """What an example needs beside its defaults: data that is made here."""
    return {
        "examples.template.listfile": [f"--train.lists={data}/train.lst", f"--val.lists={data}/val.lst"],
        "examples.template.table": [f"--data.file={data}/plants.csv"],
        "examples.imageclassification": [f"--data.images={data}/flowers"],
        "examples.tabular": [f"--train.files={data}/customers/train.csv", f"--val.files={data}/customers/val.csv"],
    }.get(name, [])


def make_data(data: Path) -> None:
    """Points in files for the list-file template, plants in a table, drawn flowers, and made-up customers."""
    if data.exists():
        return
    from examples.imageclassification.draw import write_flowers
    from examples.tabular.make import write_customers

    rng = np.random.default_rng(0)
    (data / "points").mkdir(parents=True)
    for split, count in (("train", 2000), ("val", 500)):
        paths = [data / "points" / f"{split}{number}.txt" for number in range(count)]
        for path in paths:
            label, angle = rng.integers(0, 2), rng.uniform(0, 2 * np.pi)
            path.write_text(f"{(0.5 + label) * np.cos(angle)} {(0.5 + label) * np.sin(angle)}")
            path.with_suffix(".gt.txt").write_text(str(label))
        (data / f"{split}.lst").write_text("\n".join(str(path.resolve()) for path in paths))
    lines = ["height,width,place,kind"]
    for _ in range(4000):
        kind = rng.integers(0, 3)
        height = "" if rng.random() < 0.1 else f"{rng.normal([50, 40, 60][kind], 10):.1f}"
        place = ["wood", "wall", "pond"][kind if rng.random() < 0.6 else rng.integers(0, 3)]
        lines.append(f"{height},{rng.normal([40, 30, 35][kind], 8):.1f},{place},{['fern', 'moss', 'reed'][kind]}")
    (data / "plants.csv").write_text("\n".join(lines) + "\n")
    write_flowers(data / "flowers", 160)
    write_customers(data / "customers")


if __name__ == "__main__":
    main()
